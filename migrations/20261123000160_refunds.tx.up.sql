-- Refunds of payments. order and merchant are 0 for money without an order; then held_ref
-- names the entry that holds it. Nothing here is ever removed.
CREATE TABLE refunds (
    id                 BIGINT PRIMARY KEY,
    refund_no          TEXT   NOT NULL,
    order_id           BIGINT NOT NULL DEFAULT 0,
    order_no           TEXT   NOT NULL DEFAULT '',
    attempt_id         BIGINT NOT NULL DEFAULT 0,
    supplier_id        BIGINT NOT NULL,
    account_id         BIGINT NOT NULL, -- at the supplier
    supplier_ref       TEXT   NOT NULL, -- of the payment
    trade_no           TEXT   NOT NULL,
    trade_amount       BIGINT NOT NULL,
    merchant_id        BIGINT NOT NULL DEFAULT 0,
    out_refund_no      TEXT   NOT NULL DEFAULT '',
    amount             BIGINT NOT NULL CHECK (amount > 0),
    currency           TEXT   NOT NULL,
    fee_returned       BIGINT NOT NULL DEFAULT 0 CHECK (fee_returned >= 0),
    cost_returned      BIGINT NOT NULL DEFAULT 0 CHECK (cost_returned >= 0),
    held_ref           TEXT   NOT NULL DEFAULT '',
    request_digest     TEXT   NOT NULL DEFAULT '',
    notify_url         TEXT   NOT NULL DEFAULT '',
    status             TEXT   NOT NULL CHECK (status IN ('requested', 'approved', 'rejected', 'submitted', 'unknown', 'succeeded', 'failed', 'cancelled', 'returned')),
    version            BIGINT NOT NULL DEFAULT 1,
    supplier_refund_no TEXT   NOT NULL DEFAULT '',
    reason             TEXT   NOT NULL DEFAULT '',
    by_rule            BOOLEAN NOT NULL DEFAULT FALSE, -- no person approved it
    approval_id        BIGINT NOT NULL DEFAULT 0,
    adopted            TEXT   NOT NULL DEFAULT '', -- what makes a refund that was made at the supplier unique; '' = it is ours
    first_call_at      BIGINT,
    last_call_at       BIGINT,
    created_at         BIGINT NOT NULL,
    finished_at        BIGINT
);
CREATE UNIQUE INDEX refunds_no ON refunds (refund_no);
CREATE UNIQUE INDEX refunds_out ON refunds (merchant_id, out_refund_no) WHERE out_refund_no <> '';
CREATE UNIQUE INDEX refunds_adopted ON refunds (account_id, adopted) WHERE adopted <> '';
CREATE INDEX refunds_order ON refunds (order_id) WHERE order_id <> 0;
CREATE INDEX refunds_trade ON refunds (account_id, trade_no);
CREATE INDEX refunds_merchant ON refunds (merchant_id, id);
CREATE INDEX refunds_supplier ON refunds (supplier_id, id);
CREATE INDEX refunds_status ON refunds (status, id);
CREATE INDEX refunds_held ON refunds (held_ref) WHERE held_ref <> '';

CREATE TABLE refund_history (
    id          BIGINT PRIMARY KEY,
    refund_id   BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    from_status TEXT   NOT NULL,
    to_status   TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    source_kind TEXT   NOT NULL DEFAULT '', -- approval or call; '' = none
    source_id   BIGINT NOT NULL DEFAULT 0,
    detail      TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    UNIQUE (refund_id, version)
);

ALTER TABLE orders ADD COLUMN refund_status TEXT NOT NULL DEFAULT 'none';
ALTER TABLE suppliers ADD COLUMN refund_repeat BOOLEAN NOT NULL DEFAULT FALSE;
