ALTER TABLE report_unnotified RENAME TO report_untold;
ALTER TABLE deliveries RENAME COLUMN to_subscriber TO house;
