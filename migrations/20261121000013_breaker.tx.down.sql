DROP TABLE breaker_history;
DROP TABLE breakers;
