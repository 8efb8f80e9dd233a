DROP INDEX exceptions_unheard;
ALTER TABLE exceptions DROP COLUMN alerted_at;
DROP TABLE alert_messages;
DROP TABLE alerts;
DROP TABLE alert_rules;
DROP TABLE leases;
