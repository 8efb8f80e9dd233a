DELETE FROM report_orders WHERE span_s IN (300, 86400);
DROP TABLE report_backlog;
DROP TABLE report_volume;
DROP TABLE report_waits;
DROP TABLE report_failures;
