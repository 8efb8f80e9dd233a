ALTER TABLE alert_rules DROP COLUMN window_s;
ALTER TABLE deliveries DROP COLUMN trace;
DROP TABLE report_merchants;
