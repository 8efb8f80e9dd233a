-- Disputes of payments. order and merchant are 0 until the payment is known. Nothing here is
-- ever removed.
CREATE TABLE disputes (
    id                  BIGINT PRIMARY KEY,
    dispute_no          TEXT   NOT NULL,
    order_id            BIGINT NOT NULL DEFAULT 0,
    order_no            TEXT   NOT NULL DEFAULT '',
    supplier_id         BIGINT NOT NULL,
    account_id          BIGINT NOT NULL, -- at the supplier
    supplier_dispute_no TEXT   NOT NULL,
    trade_no            TEXT   NOT NULL,
    charge_no           TEXT   NOT NULL DEFAULT '', -- another number of the payment
    merchant_id         BIGINT NOT NULL DEFAULT 0,
    amount              BIGINT NOT NULL CHECK (amount > 0), -- minor units, here and below
    exceeds             BIGINT NOT NULL DEFAULT 0 CHECK (exceeds >= 0 AND exceeds <= amount), -- above what was left of the payment when it was opened
    fee                 BIGINT NOT NULL DEFAULT 0 CHECK (fee >= 0),
    fee_back            BIGINT NOT NULL DEFAULT 0 CHECK (fee_back >= 0),
    currency            TEXT   NOT NULL,
    reason              TEXT   NOT NULL DEFAULT '',
    status              TEXT   NOT NULL CHECK (status IN ('opened', 'answered', 'won', 'lost')),
    withdrawn           BOOLEAN NOT NULL DEFAULT FALSE, -- the supplier took the money
    reinstated          BIGINT NOT NULL DEFAULT 0 CHECK (reinstated >= 0 AND reinstated <= amount), -- how much of it is back
    released            BOOLEAN NOT NULL DEFAULT FALSE, -- won before the money was taken: its reserve is released
    held_ref            TEXT   NOT NULL DEFAULT '', -- the entry that held the money without an order that was taken
    due_by              BIGINT, -- for evidence
    due_alerted_at      BIGINT, -- when an alert said that the date is near
    version             BIGINT NOT NULL DEFAULT 1,
    opened_at           BIGINT NOT NULL,
    closed_at           BIGINT
);
CREATE UNIQUE INDEX disputes_no ON disputes (dispute_no);
CREATE UNIQUE INDEX disputes_supplier_no ON disputes (supplier_dispute_no, supplier_id);
CREATE UNIQUE INDEX disputes_account_no ON disputes (supplier_dispute_no, account_id);
CREATE INDEX disputes_order ON disputes (order_id) WHERE order_id <> 0;
CREATE INDEX disputes_unmatched ON disputes (id) WHERE order_id = 0;
CREATE INDEX disputes_merchant ON disputes (merchant_id, id);
CREATE INDEX disputes_supplier ON disputes (supplier_id, id);
CREATE INDEX disputes_status ON disputes (status, id);
CREATE INDEX disputes_due ON disputes (due_by) WHERE due_alerted_at IS NULL AND due_by IS NOT NULL;

CREATE TABLE dispute_history (
    id          BIGINT PRIMARY KEY,
    dispute_id  BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    from_status TEXT   NOT NULL,
    to_status   TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    source_kind TEXT   NOT NULL DEFAULT '', -- callback; '' = none
    source_id   BIGINT NOT NULL DEFAULT 0,
    detail      TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    UNIQUE (dispute_id, version)
);

-- What operators wrote as evidence. It stays here: nothing is sent to the supplier.
CREATE TABLE dispute_evidence (
    id         BIGINT PRIMARY KEY,
    dispute_id BIGINT NOT NULL,
    actor      TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    url        TEXT   NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL
);
CREATE INDEX dispute_evidence_dispute ON dispute_evidence (dispute_id, id);

-- How much of an order's payment is disputed: open or lost. Only disputes write it.
ALTER TABLE orders ADD COLUMN disputed_amount BIGINT NOT NULL DEFAULT 0;
