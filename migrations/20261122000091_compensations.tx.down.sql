DROP TABLE compensation_tries;
DROP TABLE compensations;
