DROP TABLE form_keys;
ALTER TABLE deliveries DROP COLUMN schedule_from;
