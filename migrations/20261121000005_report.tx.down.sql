ALTER TABLE deliveries DROP COLUMN amount;
ALTER TABLE deliveries DROP COLUMN currency;
DROP TABLE report_risk;
DROP TABLE report_untold;
DROP TABLE report_callbacks;
DROP TABLE report_hours;
DROP TABLE report_minutes;
DELETE FROM settings WHERE name = 'report_fold';
DROP TABLE report_deltas;
