DROP TABLE endpoint_health;
DROP TABLE subscriptions;
UPDATE deliveries SET last_class = '' WHERE status = 'skipped';
ALTER TABLE deliveries DROP COLUMN shared;
ALTER TABLE deliveries DROP COLUMN house;
ALTER TABLE deliveries DROP COLUMN endpoint;
