-- Orders whose merchant must be notified, by the span in which the notification was
-- raised, and how many of these notifications have been delivered since. span_s is the
-- length of the span: a minute or an hour.
CREATE TABLE report_orders (
    span_s          BIGINT NOT NULL,
    start           BIGINT NOT NULL,
    currency        TEXT   NOT NULL,
    raised          BIGINT NOT NULL,
    raised_amount   BIGINT NOT NULL,
    notified        BIGINT NOT NULL,
    notified_amount BIGINT NOT NULL,
    PRIMARY KEY (span_s, start, currency)
);

-- Whether report_orders counts the delivery's event: an event that was raised before
-- this table existed, or by a program that does not write it, must not be counted when
-- it is delivered.
ALTER TABLE deliveries ADD COLUMN counted BOOLEAN NOT NULL DEFAULT FALSE;

-- Deliveries without an attempt, oldest first. A delivery that is created as claimed is
-- never in it.
CREATE INDEX deliveries_untried ON deliveries (created_at) WHERE next_at IS NOT NULL AND attempts = 0 AND currency <> '';

-- The distribution of durations over a second, finer and longer than in took and lag,
-- which older programs continue to read and write.
ALTER TABLE report_minutes ADD COLUMN took_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_minutes ADD COLUMN lag_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_hours ADD COLUMN took_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_hours ADD COLUMN lag_long TEXT NOT NULL DEFAULT '';

-- The previous default limit was the maximum duration of an attempt, which no mean can
-- exceed.
UPDATE alert_rules SET fire = 5000, clear = 4000 WHERE name = 'answer_time' AND fire >= 10000;
-- The limit of a percentile is a bound of its histogram.
UPDATE alert_rules SET
    fire = CASE WHEN fire <= 500 THEN 500 WHEN fire <= 1000 THEN 1000 WHEN fire <= 2000 THEN 2000 WHEN fire <= 2500 THEN 2500
        WHEN fire < 9000 THEN (fire + 999) / 1000 * 1000 ELSE 9000 END,
    clear = CASE WHEN clear < 500 THEN 250 WHEN clear < 1000 THEN 500 WHEN clear < 2000 THEN 1000 WHEN clear < 2500 THEN 2000
        WHEN clear < 3000 THEN 2500 WHEN clear < 8000 THEN clear / 1000 * 1000 ELSE 8000 END
WHERE name = 'slow_merchant';
