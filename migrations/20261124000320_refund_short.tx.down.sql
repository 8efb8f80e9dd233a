ALTER TABLE refunds DROP COLUMN short_at;
