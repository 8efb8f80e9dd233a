DROP INDEX disputes_held;
DROP INDEX refunds_split;
ALTER TABLE refunds DROP COLUMN split_from;
ALTER TABLE refunds DROP COLUMN accepted_at;
DROP TABLE refund_reports;
