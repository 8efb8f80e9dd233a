DROP INDEX exceptions_ended;
DROP INDEX approvals_decided;
ALTER TABLE alert_messages DROP COLUMN html;
DROP TABLE daily_reports;
