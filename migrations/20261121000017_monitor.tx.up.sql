-- When a merchant last confirmed a notification, and when an attempt to notify it last
-- failed; folded like the other figures. 0 = never.
CREATE TABLE report_merchants (
    merchant_id    BIGINT PRIMARY KEY,
    last_ok_at     BIGINT NOT NULL,
    last_failed_at BIGINT NOT NULL
);
INSERT INTO report_merchants (merchant_id, last_ok_at, last_failed_at)
    SELECT merchant_id, max(CASE WHEN ok > 0 THEN start ELSE 0 END), max(CASE WHEN retried + failed > 0 THEN start ELSE 0 END)
    FROM report_hours WHERE merchant_id <> 0 GROUP BY merchant_id;

-- The span that raised the delivery, as a W3C traceparent; only if traces are on.
ALTER TABLE deliveries ADD COLUMN trace TEXT;

-- Over how many seconds a rule's level is measured; 0 = the rule's default.
ALTER TABLE alert_rules ADD COLUMN window_s BIGINT NOT NULL DEFAULT 0;
