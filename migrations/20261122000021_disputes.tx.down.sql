DROP INDEX exceptions_dispute;
ALTER TABLE exceptions DROP COLUMN occurred_at;
