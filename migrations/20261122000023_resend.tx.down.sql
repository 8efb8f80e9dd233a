ALTER TABLE form_keys DROP COLUMN act;
DROP TABLE breaker_probes;
