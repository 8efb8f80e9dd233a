-- The figures of the overview. Each transaction adds one small row of sums
-- (report_deltas); every second these rows are folded into the tables below and
-- removed. A span is identified by its first moment in Unix microseconds.

CREATE TABLE report_deltas (
    id   BIGINT PRIMARY KEY,
    body TEXT   NOT NULL
);
-- One fold at a time: a fold locks this row.
INSERT INTO settings (name, value) VALUES ('report_fold', 0);

-- Notification attempts by merchant; merchant 0 is all merchants together. took and lag
-- are histograms: how long merchants take to answer, and how long after the payment the
-- first attempt began.
CREATE TABLE report_minutes (
    merchant_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    ok          BIGINT NOT NULL,
    retried     BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    took_us     BIGINT NOT NULL,
    took        TEXT   NOT NULL,
    lag         TEXT   NOT NULL,
    PRIMARY KEY (merchant_id, start)
);
CREATE INDEX report_minutes_start ON report_minutes (start, merchant_id);

CREATE TABLE report_hours (
    merchant_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    ok          BIGINT NOT NULL,
    retried     BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    took_us     BIGINT NOT NULL,
    took        TEXT   NOT NULL,
    lag         TEXT   NOT NULL,
    PRIMARY KEY (merchant_id, start)
);
CREATE INDEX report_hours_start ON report_hours (start, merchant_id);

-- Authentic callbacks by supplier and outcome.
CREATE TABLE report_callbacks (
    start       BIGINT NOT NULL,
    supplier_id BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (start, supplier_id, outcome)
);

-- Running totals of the money of which merchants have not been notified yet.
CREATE TABLE report_untold (
    merchant_id BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    orders      BIGINT NOT NULL,
    amount      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, currency)
);

-- The money at risk every few minutes: the history of the running totals.
CREATE TABLE report_risk (
    start    BIGINT NOT NULL,
    part     TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    orders   BIGINT NOT NULL,
    amount   BIGINT NOT NULL,
    PRIMARY KEY (start, part, currency)
);

-- The money of a delivery, so that it can be subtracted from the totals at its end; no
-- currency = no money. A write that sets or clears next_at adds to report_untold or
-- subtracts from it.
ALTER TABLE deliveries ADD COLUMN currency TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN amount BIGINT NOT NULL DEFAULT 0;
UPDATE deliveries SET
    currency = coalesce((SELECT o.currency FROM orders o WHERE o.id = deliveries.subject_id), ''),
    amount = coalesce((SELECT o.paid_amount FROM orders o WHERE o.id = deliveries.subject_id), 0)
WHERE next_at IS NOT NULL AND event_type = 'order.paid';
INSERT INTO report_untold (merchant_id, currency, orders, amount)
    SELECT merchant_id, currency, count(*), CAST(sum(amount) AS BIGINT) FROM deliveries
    WHERE next_at IS NOT NULL AND currency <> '' GROUP BY merchant_id, currency;
