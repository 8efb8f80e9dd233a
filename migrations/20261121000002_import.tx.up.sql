-- Orders that are being imported from another system. They are staged here page by
-- page and become visible in one transaction. Rows without a run are left over from a
-- crash; the next import clears them.

CREATE TABLE import_runs (
    id         BIGINT PRIMARY KEY,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
);

CREATE TABLE import_orders (
    run_id            BIGINT NOT NULL,
    line              BIGINT NOT NULL,
    id                BIGINT NOT NULL,
    history_id        BIGINT NOT NULL,
    attempt_id        BIGINT NOT NULL,
    attempt_status    TEXT   NOT NULL,
    account_id        BIGINT NOT NULL,
    order_no          TEXT   NOT NULL,
    merchant_id       BIGINT NOT NULL,
    out_trade_no      TEXT   NOT NULL,
    supplier_id       BIGINT NOT NULL,
    amount            BIGINT NOT NULL,
    currency          TEXT   NOT NULL,
    exponent          BIGINT NOT NULL,
    subject           TEXT   NOT NULL,
    notify_url        TEXT   NOT NULL,
    status            TEXT   NOT NULL,
    version           BIGINT NOT NULL,
    supplier_trade_no TEXT   NOT NULL,
    paid_amount       BIGINT NOT NULL,
    close_reason      TEXT   NOT NULL,
    created_at        BIGINT NOT NULL,
    expires_at        BIGINT NOT NULL,
    next_at           BIGINT,
    paid_at           BIGINT,
    closed_at         BIGINT,
    PRIMARY KEY (run_id, line)
);
