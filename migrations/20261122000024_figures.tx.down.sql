ALTER TABLE report_hours DROP COLUMN lag_long;
ALTER TABLE report_hours DROP COLUMN took_long;
ALTER TABLE report_minutes DROP COLUMN lag_long;
ALTER TABLE report_minutes DROP COLUMN took_long;
DROP INDEX deliveries_untried;
ALTER TABLE deliveries DROP COLUMN counted;
DROP TABLE report_orders;
