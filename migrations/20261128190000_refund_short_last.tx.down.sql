ALTER TABLE refunds DROP COLUMN short_last;
