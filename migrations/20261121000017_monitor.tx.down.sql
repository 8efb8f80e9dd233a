ALTER TABLE deliveries DROP COLUMN trace;
DROP TABLE report_merchants;
