-- Columns and tables get the names that the program uses. No rows are rewritten.
ALTER TABLE deliveries RENAME COLUMN house TO to_subscriber;
ALTER TABLE report_untold RENAME TO report_unnotified;
