-- Orders of which their merchant must be notified, by the span in which the
-- notification was raised, and how many of them have been delivered since. span_s
-- is the span's length: a minute or an hour.
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

-- Whether the delivery's event is among those: what was raised before this table
-- was there, or by a program that does not write it, must not be counted when it
-- arrives.
ALTER TABLE deliveries ADD COLUMN counted BOOLEAN NOT NULL DEFAULT FALSE;

-- What was never tried, oldest first. A delivery that is created as its claim is
-- never in it.
CREATE INDEX deliveries_untried ON deliveries (created_at) WHERE next_at IS NOT NULL AND attempts = 0 AND currency <> '';

-- How the durations over a second are spread, finer and further than took and
-- lag say, which a program of before goes on reading and writing.
ALTER TABLE report_minutes ADD COLUMN took_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_minutes ADD COLUMN lag_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_hours ADD COLUMN took_long TEXT NOT NULL DEFAULT '';
ALTER TABLE report_hours ADD COLUMN lag_long TEXT NOT NULL DEFAULT '';

-- The default limit of before was the longest that an attempt may take: no mean
-- is above it.
UPDATE alert_rules SET fire = 5000, clear = 4000 WHERE name = 'answer_time' AND fire >= 10000;
-- The limit of a percentile is a bound of the histogram behind it.
UPDATE alert_rules SET
    fire = CASE WHEN fire <= 500 THEN 500 WHEN fire <= 1000 THEN 1000 WHEN fire <= 2000 THEN 2000 WHEN fire <= 2500 THEN 2500
        WHEN fire < 9000 THEN (fire + 999) / 1000 * 1000 ELSE 9000 END,
    clear = CASE WHEN clear < 500 THEN 250 WHEN clear < 1000 THEN 500 WHEN clear < 2000 THEN 1000 WHEN clear < 2500 THEN 2000
        WHEN clear < 3000 THEN 2500 WHEN clear < 8000 THEN clear / 1000 * 1000 ELSE 8000 END
WHERE name = 'slow_merchant';
