ALTER TABLE refunds ADD COLUMN short_at BIGINT; -- since when our account at the supplier is short of funds
