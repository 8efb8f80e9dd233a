-- The figures of the analytics page. span_s is the length of the span that begins at start (Unix
-- microseconds): five minutes, an hour, or a day of the installation's time zone (86400,
-- whatever its true length). report_orders has these spans from here on, beside its minutes.

-- Failed attempts to notify, by cause. orders and amount are the orders whose first attempt
-- failed for this cause, so that money counts once however often it is tried.
CREATE TABLE report_failures (
    span_s   BIGINT NOT NULL,
    start    BIGINT NOT NULL,
    class    TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    attempts BIGINT NOT NULL,
    orders   BIGINT NOT NULL,
    amount   BIGINT NOT NULL,
    PRIMARY KEY (span_s, start, class, currency)
);

-- How long after their notification was created orders were notified, by the span of the
-- creation. bucket is the number of a bound of the histogram.
CREATE TABLE report_waits (
    span_s BIGINT NOT NULL,
    start  BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    PRIMARY KEY (span_s, start, bucket)
);

-- Orders by the span in which they were created, and how many of them have been paid since.
CREATE TABLE report_volume (
    span_s         BIGINT NOT NULL,
    start          BIGINT NOT NULL,
    merchant_id    BIGINT NOT NULL,
    supplier_id    BIGINT NOT NULL,
    currency       TEXT   NOT NULL,
    created        BIGINT NOT NULL,
    created_amount BIGINT NOT NULL,
    paid           BIGINT NOT NULL,
    paid_amount    BIGINT NOT NULL,
    PRIMARY KEY (span_s, start, merchant_id, supplier_id, currency)
);

-- Deliveries that are due, by the minute.
CREATE TABLE report_backlog (
    start BIGINT PRIMARY KEY,
    due   BIGINT NOT NULL
);
