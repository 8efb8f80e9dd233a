-- Payouts to merchants. Nothing here is ever removed.
CREATE TABLE payouts (
    id                 BIGINT PRIMARY KEY,
    payout_no          TEXT   NOT NULL,
    merchant_id        BIGINT NOT NULL,
    out_payout_no      TEXT   NOT NULL,
    supplier_id        BIGINT NOT NULL,
    account_id         BIGINT NOT NULL, -- ours at the supplier
    payout_account_id  BIGINT NOT NULL,
    account            TEXT   NOT NULL, -- JSON: payout_account_id as it may be shown
    amount             BIGINT NOT NULL CHECK (amount > 0),
    fee_amount         BIGINT NOT NULL DEFAULT 0 CHECK (fee_amount >= 0),
    currency           TEXT   NOT NULL,
    exponent           BIGINT NOT NULL,
    request_digest     TEXT   NOT NULL,
    notify_url         TEXT   NOT NULL DEFAULT '',
    status             TEXT   NOT NULL CHECK (status IN ('created', 'approved', 'rejected', 'cancelled', 'debiting', 'crediting', 'unknown', 'succeeded', 'failed', 'reversing', 'reversed', 'stuck')),
    version            BIGINT NOT NULL DEFAULT 1,
    failure            TEXT   NOT NULL DEFAULT '',
    supplier_payout_no TEXT   NOT NULL DEFAULT '',
    by_rule            BOOLEAN NOT NULL DEFAULT FALSE, -- no person approved it
    approval_id        BIGINT NOT NULL DEFAULT 0,
    debited_at         BIGINT,
    first_call_at      BIGINT, -- NULL = it was never sent
    last_call_at       BIGINT,
    short_at           BIGINT, -- since when our account at the supplier is short of funds
    short              BOOLEAN NOT NULL DEFAULT FALSE, -- that was the answer to the last call
    created_at         BIGINT NOT NULL,
    finished_at        BIGINT
);
CREATE UNIQUE INDEX payouts_no ON payouts (payout_no);
CREATE UNIQUE INDEX payouts_out ON payouts (merchant_id, out_payout_no);
CREATE INDEX payouts_merchant ON payouts (merchant_id, id);
CREATE INDEX payouts_debited ON payouts (merchant_id, debited_at) WHERE debited_at IS NOT NULL;
CREATE INDEX payouts_undebited ON payouts (merchant_id, created_at) WHERE debited_at IS NULL;
CREATE INDEX payouts_supplier ON payouts (supplier_id, id);
CREATE INDEX payouts_status ON payouts (status, id);

-- The steps of a payout. A key is fixed for life.
CREATE TABLE fund_steps (
    id         BIGINT PRIMARY KEY,
    payout_id  BIGINT NOT NULL,
    step       TEXT   NOT NULL CHECK (step IN ('debit', 'credit', 'reversal')),
    key        TEXT   NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('init', 'processing', 'unknown', 'success', 'failed', 'returned')),
    version    BIGINT NOT NULL DEFAULT 1,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX fund_steps_key ON fund_steps (key);
CREATE UNIQUE INDEX fund_steps_step ON fund_steps (payout_id, step);

CREATE TABLE payout_history (
    id          BIGINT PRIMARY KEY,
    payout_id   BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    from_status TEXT   NOT NULL,
    to_status   TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    source_kind TEXT   NOT NULL DEFAULT '', -- approval or call; '' = none
    source_id   BIGINT NOT NULL DEFAULT 0,
    detail      TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    UNIQUE (payout_id, version)
);
