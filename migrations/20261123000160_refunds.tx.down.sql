ALTER TABLE suppliers DROP COLUMN refund_repeat;
ALTER TABLE orders DROP COLUMN refund_status;
DROP TABLE refund_history;
DROP TABLE refunds;
