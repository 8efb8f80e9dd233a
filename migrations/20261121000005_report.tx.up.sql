-- What the overview shows. Facts leave one small row of sums in their own
-- transaction (report_deltas); every second they are folded into the tables
-- below and removed. Spans are named by their first moment in Unix microseconds.

CREATE TABLE report_deltas (
    id   BIGINT PRIMARY KEY,
    body TEXT   NOT NULL
);
-- One fold at a time: who holds this row adds up.
INSERT INTO settings (name, value) VALUES ('report_fold', 0);

-- Attempts of notifications by merchant; merchant 0 is all of them together.
-- took and lag are histograms: how long merchants take, and how long after the
-- payment the first attempt began.
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

-- Authentic callbacks by supplier and what came of them.
CREATE TABLE report_callbacks (
    start       BIGINT NOT NULL,
    supplier_id BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (start, supplier_id, outcome)
);

-- Running totals of money that merchants are still to be told about.
CREATE TABLE report_untold (
    merchant_id BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    orders      BIGINT NOT NULL,
    amount      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, currency)
);

-- What was at risk, every few minutes: the past of the running totals.
CREATE TABLE report_risk (
    start    BIGINT NOT NULL,
    part     TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    orders   BIGINT NOT NULL,
    amount   BIGINT NOT NULL,
    PRIMARY KEY (start, part, currency)
);

-- The money a delivery is about, so that its end can take it off the totals; no
-- currency = it is about none. Whoever sets next_at or takes it away adds to
-- report_untold or takes off.
ALTER TABLE deliveries ADD COLUMN currency TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN amount BIGINT NOT NULL DEFAULT 0;
UPDATE deliveries SET
    currency = coalesce((SELECT o.currency FROM orders o WHERE o.id = deliveries.subject_id), ''),
    amount = coalesce((SELECT o.paid_amount FROM orders o WHERE o.id = deliveries.subject_id), 0)
WHERE next_at IS NOT NULL AND event_type = 'order.paid';
INSERT INTO report_untold (merchant_id, currency, orders, amount)
    SELECT merchant_id, currency, count(*), CAST(sum(amount) AS BIGINT) FROM deliveries
    WHERE next_at IS NOT NULL AND currency <> '' GROUP BY merchant_id, currency;
