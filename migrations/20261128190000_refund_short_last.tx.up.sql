ALTER TABLE refunds ADD COLUMN short_last BOOLEAN NOT NULL DEFAULT FALSE; -- the last call was answered so: one that was not may have made the refund
