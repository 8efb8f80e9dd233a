-- Columns and tables get the names that the program has for them. Nothing is rewritten.
ALTER TABLE deliveries RENAME COLUMN house TO to_subscriber;
ALTER TABLE report_untold RENAME TO report_unnotified;
