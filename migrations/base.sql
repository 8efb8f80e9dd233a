-- The tables of both engines. What only one of them has, or has in another way, is in postgres.sql
-- and sqlite.sql. Times are Unix microseconds, amounts are minor units of their currency.

-- The installation: its nodes, leases, settings and master key.

CREATE TABLE nodes (
    slot             BIGINT  PRIMARY KEY CHECK (slot BETWEEN 0 AND 1023),
    name             TEXT    NOT NULL,
    boot             BIGINT  NOT NULL UNIQUE,
    started_at       BIGINT  NOT NULL,
    seen_at          BIGINT  NOT NULL,
    sends            BOOLEAN NOT NULL DEFAULT TRUE,
    slow             TEXT    NOT NULL DEFAULT '',
    key_ids          TEXT    NOT NULL DEFAULT '',
    ranges           TEXT    NOT NULL DEFAULT '',
    build            TEXT    NOT NULL DEFAULT '',
    process          TEXT    NOT NULL DEFAULT '',
    faults           TEXT    NOT NULL DEFAULT '',
    config_version   BIGINT  NOT NULL DEFAULT 0,
    newest_migration TEXT    NOT NULL,
    left_out         TEXT    NOT NULL DEFAULT ''
);

CREATE TABLE leases (
    name  TEXT   PRIMARY KEY,
    owner BIGINT NOT NULL,
    until BIGINT NOT NULL
);

CREATE TABLE settings (
    name  TEXT   PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE paused_queues (
    name      TEXT   PRIMARY KEY,
    paused_by TEXT   NOT NULL,
    reason    TEXT   NOT NULL,
    paused_at BIGINT NOT NULL
);

CREATE TABLE master_key (
    place      BIGINT PRIMARY KEY CHECK (place = 1),
    key_id     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What is kept of removed master keys, sealed under the current one: enough to verify what was
-- written under them.
CREATE TABLE retired_keys (
    key_id TEXT PRIMARY KEY,
    sealed TEXT NOT NULL
);

-- Suppliers, merchants, subscribers and what is applied to them.

CREATE TABLE supplier_accounts (
    id   BIGINT PRIMARY KEY,
    name TEXT   NOT NULL UNIQUE
);

CREATE TABLE suppliers (
    id                 BIGINT  PRIMARY KEY,
    code               TEXT    NOT NULL UNIQUE,
    kind               TEXT    NOT NULL,
    account_id         BIGINT  NOT NULL REFERENCES supplier_accounts (id),
    enabled            BOOLEAN NOT NULL,
    allow_ips          JSONB   NOT NULL,
    config             JSONB   NOT NULL,
    fingerprint        TEXT    NOT NULL DEFAULT '',
    created_at         BIGINT  NOT NULL,
    updated_at         BIGINT  NOT NULL,
    disabled_at        BIGINT,
    query_after        BIGINT  NOT NULL DEFAULT 120000000,
    query_rate         BIGINT  NOT NULL DEFAULT 50,
    query_pending        BOOLEAN NOT NULL DEFAULT TRUE,
    refund_repeat      BOOLEAN NOT NULL DEFAULT FALSE,
    payout_query_after BIGINT  NOT NULL DEFAULT 0,
    payout_repeat      BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE TABLE merchants (
    id               BIGINT  PRIMARY KEY,
    code             TEXT    NOT NULL UNIQUE,
    name             TEXT    NOT NULL,
    api_key_hash     TEXT    UNIQUE,
    signing_secrets  JSONB   NOT NULL,
    notify           JSONB   NOT NULL,
    fingerprint      TEXT    NOT NULL DEFAULT '',
    created_at       BIGINT  NOT NULL,
    updated_at       BIGINT  NOT NULL,
    disabled_at      BIGINT,
    resend_when_back BOOLEAN NOT NULL DEFAULT TRUE,
    limits           TEXT    NOT NULL DEFAULT '',
    refund_window    BIGINT  NOT NULL DEFAULT 0,
    payout_key_hash  TEXT,
    payout_ips       TEXT    NOT NULL DEFAULT '',
    payout_fees      TEXT    NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX merchants_payout_key ON merchants (payout_key_hash) WHERE payout_key_hash IS NOT NULL;

CREATE TABLE subscriptions (
    id              BIGINT PRIMARY KEY,
    code            TEXT   NOT NULL UNIQUE,
    name            TEXT   NOT NULL,
    merchants       JSONB  NOT NULL,
    signing_secrets JSONB  NOT NULL,
    notify          JSONB  NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    disabled_at     BIGINT
);

CREATE TABLE fee_rules (
    owner_id BIGINT NOT NULL, -- of the merchant or the supplier
    version  BIGINT NOT NULL, -- of the settings, from which on it holds
    rules    TEXT   NOT NULL, -- JSON, by supplier; '{}' = none
    PRIMARY KEY (owner_id, version)
);

CREATE TABLE skus (
    id      BIGINT PRIMARY KEY,
    sku     TEXT   NOT NULL UNIQUE,
    stock   BIGINT NOT NULL,
    locked  BIGINT NOT NULL DEFAULT 0,
    sold    BIGINT NOT NULL DEFAULT 0,
    applied BIGINT NOT NULL,
    CHECK (stock >= 0 AND locked >= 0 AND locked <= stock AND sold >= 0)
);

-- People, their access, and what they did.

CREATE TABLE operators (
    id                  BIGINT  PRIMARY KEY,
    name                TEXT    NOT NULL UNIQUE,
    role                TEXT    NOT NULL,
    password_hash       TEXT    NOT NULL,
    must_change         BOOLEAN NOT NULL,
    created_at          BIGINT  NOT NULL,
    updated_at          BIGINT  NOT NULL,
    disabled_at         BIGINT,
    language            TEXT    NOT NULL DEFAULT '',
    theme               TEXT    NOT NULL DEFAULT '',
    zone                TEXT    NOT NULL DEFAULT '',
    page_rows           BIGINT  NOT NULL DEFAULT 0,
    password_expires_at BIGINT
);

CREATE TABLE operator_tokens (
    id          BIGINT PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    token_hash  TEXT   NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX operator_tokens_operator ON operator_tokens (operator_id);

CREATE TABLE api_tokens (
    id            BIGINT  PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    scope         TEXT    NOT NULL,
    token_hash    TEXT    NOT NULL UNIQUE,
    created_at    BIGINT  NOT NULL,
    revoked_at    BIGINT
);

CREATE TABLE sessions (
    token_hash  TEXT   PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    remote_addr TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL
);
CREATE INDEX sessions_operator ON sessions (operator_id);
CREATE INDEX sessions_started ON sessions (started_at);

CREATE TABLE form_keys (
    form_key TEXT   PRIMARY KEY,
    at       BIGINT NOT NULL,
    act      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX form_keys_at ON form_keys (at);

-- Acts, chained by their hashes.
CREATE TABLE audit (
    number      BIGINT PRIMARY KEY,
    at          BIGINT NOT NULL,
    actor       TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    object      TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    params      TEXT   NOT NULL,
    remote_addr TEXT   NOT NULL,
    hash        TEXT   NOT NULL,
    key_id      TEXT   NOT NULL DEFAULT '' -- the master key from which that of the hash is derived
);
CREATE INDEX audit_object ON audit (object, object_id, number);
CREATE INDEX audit_actor ON audit (actor, number);
CREATE INDEX audit_action ON audit (action, number);

CREATE TABLE views (
    id         BIGINT  PRIMARY KEY,
    owner_id   BIGINT  NOT NULL, -- operator
    list       TEXT    NOT NULL, -- 'orders'
    name       TEXT    NOT NULL,
    was_name   TEXT    NOT NULL DEFAULT '', -- before it was renamed
    query      TEXT    NOT NULL, -- the filter as in the URL
    shared     BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX views_name ON views (owner_id, list, name) WHERE deleted_at IS NULL;
CREATE INDEX views_shared ON views (list) WHERE shared AND deleted_at IS NULL;
CREATE INDEX views_deleted ON views (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE view_watches (
    view_id     BIGINT NOT NULL,
    operator_id BIGINT NOT NULL,
    newest      BIGINT NOT NULL, -- key of the newest row that was counted
    empty_since BIGINT, -- since when no row matched; NULL = some do
    notified_at     BIGINT NOT NULL, -- of the last message; 0 = none
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (view_id, operator_id)
);
CREATE INDEX view_watches_operator ON view_watches (operator_id);

CREATE TABLE inbox (
    id          BIGINT  PRIMARY KEY,
    operator_id BIGINT  NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('mention', 'view')),
    actor       TEXT    NOT NULL, -- who mentioned the operator; '' = nobody
    object      TEXT    NOT NULL, -- order, exception or view
    object_id   TEXT    NOT NULL,
    text        TEXT    NOT NULL, -- the note, or the name of the view
    rows        BIGINT  NOT NULL, -- of a view
    more        BOOLEAN NOT NULL,
    at          BIGINT  NOT NULL,
    read_at     BIGINT
);
CREATE INDEX inbox_operator ON inbox (operator_id, id);
CREATE INDEX inbox_unread ON inbox (operator_id, id) WHERE read_at IS NULL;

-- Orders, their payments, and what came in about them.

CREATE TABLE orders (
    id                BIGINT  PRIMARY KEY,
    merchant_id       BIGINT  NOT NULL,
    supplier_id       BIGINT  NOT NULL,
    amount            BIGINT  NOT NULL CHECK (amount > 0),
    exponent          BIGINT  NOT NULL,
    created_at        BIGINT  NOT NULL,
    expires_at        BIGINT  NOT NULL,
    order_no          TEXT    NOT NULL UNIQUE,
    out_trade_no      TEXT    NOT NULL,
    currency          TEXT    NOT NULL,
    subject           TEXT    NOT NULL,
    notify_url        TEXT    NOT NULL DEFAULT '',
    request_digest    TEXT    NOT NULL,
    has_items         BOOLEAN NOT NULL DEFAULT FALSE,
    fee_rule          BIGINT,
    -- What changes comes last, as in deliveries.
    fee_amount        BIGINT  NOT NULL DEFAULT 0 CHECK (fee_amount >= 0),
    refunded_amount   BIGINT  NOT NULL DEFAULT 0 CHECK (refunded_amount >= 0),
    status            TEXT    NOT NULL CHECK (status IN ('pending', 'paying', 'closing', 'paid', 'failed', 'closed')),
    version           BIGINT  NOT NULL,
    supplier_trade_no TEXT    NOT NULL DEFAULT '',
    paid_amount       BIGINT  NOT NULL DEFAULT 0 CHECK (paid_amount >= 0),
    close_reason      TEXT    NOT NULL DEFAULT '',
    close_tries       BIGINT  NOT NULL DEFAULT 0,
    next_at           BIGINT,
    paid_at           BIGINT,
    closed_at         BIGINT,
    paid_from         TEXT, -- this and the next four: the step to paid, see order_payments
    paid_version      BIGINT,
    paid_by           TEXT,
    paid_callback     BIGINT,
    confirmed_at      BIGINT,
    query_tries       BIGINT  NOT NULL DEFAULT 0,
    queried_at          BIGINT,
    lease_owner       BIGINT,
    refund_status     TEXT    NOT NULL DEFAULT 'none',
    disputed_amount   BIGINT  NOT NULL DEFAULT 0,
    UNIQUE (merchant_id, out_trade_no)
);
CREATE INDEX orders_due ON orders (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX orders_ending ON orders (substr(order_no, length(order_no) - 5));
CREATE INDEX orders_late ON orders (next_at) WHERE close_tries > 0;
CREATE INDEX orders_queried ON orders (next_at) WHERE query_tries > 2;

-- The step to paid of an order, which a payment writes in the order itself.
CREATE VIEW order_payments AS SELECT
    id, id AS order_id, paid_version AS version, paid_from AS from_status, 'paid' AS to_status,
    'callback' AS cause, paid_by AS actor, paid_callback AS source_id, confirmed_at AS created_at
FROM orders WHERE paid_callback IS NOT NULL;

CREATE TABLE order_items (
    order_id BIGINT NOT NULL,
    sku_id   BIGINT NOT NULL,
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    short    BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, sku_id)
);

CREATE TABLE callback_keys (
    account_id  BIGINT NOT NULL,
    event_key   TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    callback_id BIGINT NOT NULL,
    PRIMARY KEY (account_id, event_key, digest)
);

CREATE TABLE callback_repeats (
    callback_id  BIGINT PRIMARY KEY,
    seen         BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    last_addr    TEXT   NOT NULL,
    kept         BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE refused_callbacks (
    id          BIGINT PRIMARY KEY,
    supplier    TEXT   NOT NULL,
    outcome     TEXT   NOT NULL,
    received_at BIGINT NOT NULL,
    remote_addr TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    query       TEXT   NOT NULL,
    headers     TEXT   NOT NULL,
    body        BYTEA  NOT NULL,
    steps       TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX refused_callbacks_supplier ON refused_callbacks (supplier, id);

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

-- The ledger.

CREATE TABLE accounts (
    id        BIGINT PRIMARY KEY,
    code      TEXT   NOT NULL,
    currency  TEXT   NOT NULL,
    balance   BIGINT NOT NULL DEFAULT 0,
    last_line BIGINT NOT NULL DEFAULT 0, -- 0 = there is none
    credits   BIGINT NOT NULL DEFAULT 0, -- of its last line
    folded_at BIGINT,
    UNIQUE (code, currency)
);

CREATE TABLE journals (
    id         BIGINT  PRIMARY KEY,
    created_at BIGINT  NOT NULL,
    folded     BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX journals_unfolded ON journals (id) WHERE NOT folded;

CREATE TABLE transfers (
    id             BIGINT PRIMARY KEY,
    journal_id     BIGINT NOT NULL,
    debit_account  BIGINT NOT NULL,
    credit_account BIGINT NOT NULL,
    amount         BIGINT NOT NULL CHECK (amount > 0),
    currency       TEXT   NOT NULL,
    ref            TEXT   NOT NULL UNIQUE,
    created_at     BIGINT NOT NULL,
    CHECK (debit_account <> credit_account)
);

CREATE TABLE freezes (
    approval_id BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount >= 0), -- minor units
    at          BIGINT NOT NULL,
    lifted_at   BIGINT
);
CREATE INDEX freezes_merchant ON freezes (merchant_id, currency) WHERE lifted_at IS NULL;

-- Funds: refunds, payouts, disputes.

CREATE TABLE refunds (
    id                 BIGINT  PRIMARY KEY,
    refund_no          TEXT    NOT NULL,
    order_id           BIGINT  NOT NULL DEFAULT 0,
    order_no           TEXT    NOT NULL DEFAULT '',
    attempt_id         BIGINT  NOT NULL DEFAULT 0,
    supplier_id        BIGINT  NOT NULL,
    account_id         BIGINT  NOT NULL, -- at the supplier
    supplier_ref       TEXT    NOT NULL, -- of the payment
    trade_no           TEXT    NOT NULL,
    trade_amount       BIGINT  NOT NULL,
    merchant_id        BIGINT  NOT NULL DEFAULT 0,
    out_refund_no      TEXT    NOT NULL DEFAULT '',
    amount             BIGINT  NOT NULL CHECK (amount > 0),
    currency           TEXT    NOT NULL,
    fee_returned       BIGINT  NOT NULL DEFAULT 0 CHECK (fee_returned >= 0),
    cost_returned      BIGINT  NOT NULL DEFAULT 0 CHECK (cost_returned >= 0),
    held_ref           TEXT    NOT NULL DEFAULT '',
    request_digest     TEXT    NOT NULL DEFAULT '',
    notify_url         TEXT    NOT NULL DEFAULT '',
    status             TEXT    NOT NULL CHECK (status IN ('requested', 'approved', 'rejected', 'submitted', 'unknown', 'succeeded', 'failed', 'cancelled', 'returned')),
    version            BIGINT  NOT NULL DEFAULT 1,
    supplier_refund_no TEXT    NOT NULL DEFAULT '',
    reason             TEXT    NOT NULL DEFAULT '',
    by_rule            BOOLEAN NOT NULL DEFAULT FALSE, -- no person approved it
    approval_id        BIGINT  NOT NULL DEFAULT 0,
    adopted            TEXT    NOT NULL DEFAULT '', -- what makes a refund that was made at the supplier unique; '' = it is ours
    first_call_at      BIGINT,
    last_call_at       BIGINT,
    created_at         BIGINT  NOT NULL,
    finished_at        BIGINT,
    short_at           BIGINT, -- since when our account at the supplier is short of funds
    accepted_at        BIGINT,
    split_from         BIGINT  NOT NULL DEFAULT 0,
    short_last         BOOLEAN NOT NULL DEFAULT FALSE -- that was the answer to the last call
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
CREATE INDEX refunds_split ON refunds (split_from) WHERE split_from <> 0;

CREATE TABLE refund_reports (
    account_id  BIGINT NOT NULL, -- at the supplier
    trade_no    TEXT   NOT NULL,
    number      TEXT   NOT NULL, -- of the refund, the supplier's; '' = none
    total       BIGINT NOT NULL, -- 0 = none
    amount      BIGINT NOT NULL, -- of the refund
    currency    TEXT   NOT NULL, -- '' = that of the payment
    stage       BIGINT NOT NULL, -- of the refund: 1 pending, 2 done, 3 failed; 0 = none
    received_at BIGINT NOT NULL, -- first receipt
    news_at     BIGINT NOT NULL, -- receipt of the first message, or of the last one with a later date
    dated_from  BIGINT NOT NULL, -- first date by the supplier's clock, of a failed refund that of the failure; 0 = none
    dated_to    BIGINT NOT NULL, -- last date
    PRIMARY KEY (trade_no, account_id, number, total)
);

CREATE TABLE payout_accounts (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    code        TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    holder      TEXT   NOT NULL,
    number      TEXT   NOT NULL, -- sealed
    number_hash TEXT   NOT NULL, -- MAC of merchant, kind and number
    last4       TEXT   NOT NULL, -- of the number
    bank        TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    disabled_at BIGINT
);
CREATE UNIQUE INDEX payout_accounts_code ON payout_accounts (merchant_id, code) WHERE disabled_at IS NULL;
CREATE INDEX payout_accounts_merchant ON payout_accounts (merchant_id, code, id);
CREATE INDEX payout_accounts_number ON payout_accounts (number_hash);

CREATE TABLE payouts (
    id                 BIGINT  PRIMARY KEY,
    payout_no          TEXT    NOT NULL,
    merchant_id        BIGINT  NOT NULL,
    out_payout_no      TEXT    NOT NULL,
    supplier_id        BIGINT  NOT NULL,
    account_id         BIGINT  NOT NULL, -- ours at the supplier
    payout_account_id  BIGINT  NOT NULL,
    account            TEXT    NOT NULL, -- JSON: payout_account_id as it may be shown
    amount             BIGINT  NOT NULL CHECK (amount > 0),
    fee_amount         BIGINT  NOT NULL DEFAULT 0 CHECK (fee_amount >= 0),
    currency           TEXT    NOT NULL,
    exponent           BIGINT  NOT NULL,
    request_digest     TEXT    NOT NULL,
    notify_url         TEXT    NOT NULL DEFAULT '',
    status             TEXT    NOT NULL CHECK (status IN ('created', 'approved', 'rejected', 'cancelled', 'debiting', 'crediting', 'unknown', 'succeeded', 'failed', 'reversing', 'reversed', 'stuck')),
    version            BIGINT  NOT NULL DEFAULT 1,
    failure            TEXT    NOT NULL DEFAULT '',
    supplier_payout_no TEXT    NOT NULL DEFAULT '',
    by_rule            BOOLEAN NOT NULL DEFAULT FALSE, -- no person approved it
    approval_id        BIGINT  NOT NULL DEFAULT 0,
    debited_at         BIGINT,
    first_call_at      BIGINT, -- NULL = it was never sent
    last_call_at       BIGINT,
    short_at           BIGINT, -- since when our account at the supplier is short of funds
    short              BOOLEAN NOT NULL DEFAULT FALSE, -- that was the answer to the last call
    created_at         BIGINT  NOT NULL,
    finished_at        BIGINT
);
CREATE UNIQUE INDEX payouts_no ON payouts (payout_no);
CREATE UNIQUE INDEX payouts_out ON payouts (merchant_id, out_payout_no);
CREATE INDEX payouts_merchant ON payouts (merchant_id, id);
CREATE INDEX payouts_debited ON payouts (merchant_id, debited_at) WHERE debited_at IS NOT NULL;
CREATE INDEX payouts_undebited ON payouts (merchant_id, created_at) WHERE debited_at IS NULL;
CREATE INDEX payouts_supplier ON payouts (supplier_id, id);
CREATE INDEX payouts_status ON payouts (status, id);

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

CREATE TABLE disputes (
    id                  BIGINT  PRIMARY KEY,
    dispute_no          TEXT    NOT NULL,
    order_id            BIGINT  NOT NULL DEFAULT 0,
    order_no            TEXT    NOT NULL DEFAULT '',
    supplier_id         BIGINT  NOT NULL,
    account_id          BIGINT  NOT NULL, -- at the supplier
    supplier_dispute_no TEXT    NOT NULL,
    trade_no            TEXT    NOT NULL,
    charge_no           TEXT    NOT NULL DEFAULT '', -- another number of the payment
    merchant_id         BIGINT  NOT NULL DEFAULT 0,
    amount              BIGINT  NOT NULL CHECK (amount > 0), -- minor units, here and below
    -- above what was left of the payment when it was opened
    exceeds             BIGINT  NOT NULL DEFAULT 0 CHECK (exceeds >= 0 AND exceeds <= amount),
    fee                 BIGINT  NOT NULL DEFAULT 0 CHECK (fee >= 0),
    fee_back            BIGINT  NOT NULL DEFAULT 0 CHECK (fee_back >= 0),
    currency            TEXT    NOT NULL,
    reason              TEXT    NOT NULL DEFAULT '',
    status              TEXT    NOT NULL CHECK (status IN ('opened', 'answered', 'won', 'lost')),
    withdrawn           BOOLEAN NOT NULL DEFAULT FALSE, -- the supplier took the money
    reinstated          BIGINT  NOT NULL DEFAULT 0 CHECK (reinstated >= 0 AND reinstated <= amount), -- how much of it is back
    released            BOOLEAN NOT NULL DEFAULT FALSE, -- won before the money was taken: its reserve is released
    held_ref            TEXT    NOT NULL DEFAULT '', -- the entry that held the money without an order that was taken
    due_by              BIGINT, -- for evidence
    due_alerted_at      BIGINT, -- when an alert said that the date is near
    version             BIGINT  NOT NULL DEFAULT 1,
    opened_at           BIGINT  NOT NULL,
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
CREATE INDEX disputes_held ON disputes (held_ref) WHERE held_ref <> '';

CREATE TABLE fund_history (
    id          BIGINT PRIMARY KEY,
    subject     TEXT   NOT NULL CHECK (subject IN ('refund', 'payout', 'dispute')),
    subject_id  BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    from_status TEXT   NOT NULL,
    to_status   TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    source_kind TEXT   NOT NULL DEFAULT '', -- approval, call or callback; '' = none
    source_id   BIGINT NOT NULL DEFAULT 0,
    detail      TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    UNIQUE (subject, subject_id, version)
);

CREATE TABLE dispute_evidence (
    id         BIGINT PRIMARY KEY,
    dispute_id BIGINT NOT NULL,
    actor      TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    url        TEXT   NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL
);
CREATE INDEX dispute_evidence_dispute ON dispute_evidence (dispute_id, id);

-- Notifications to merchants and subscribers.

CREATE TABLE events (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    subject_id  BIGINT NOT NULL,
    type        TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    body        TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    UNIQUE (subject_id, version, type)
);

CREATE TABLE deliveries (
    id             BIGINT  PRIMARY KEY,
    event_id       BIGINT  NOT NULL,
    recipient_id   BIGINT  NOT NULL,
    subject_id     BIGINT  NOT NULL,
    created_at     BIGINT  NOT NULL,
    amount         BIGINT  NOT NULL DEFAULT 0,
    schedule_from  BIGINT  NOT NULL DEFAULT 0,
    version        BIGINT,
    event_type     TEXT    NOT NULL,
    channel        TEXT    NOT NULL,
    url            TEXT    NOT NULL,
    currency       TEXT    NOT NULL DEFAULT '',
    endpoint       TEXT    NOT NULL DEFAULT '',
    to_subscriber  BOOLEAN NOT NULL DEFAULT FALSE,
    shared         BOOLEAN NOT NULL DEFAULT FALSE,
    trace          TEXT,
    body           TEXT,
    -- What changes comes last: PostgreSQL logs an updated row without the part that stays.
    status         TEXT    NOT NULL CHECK (status IN ('queued', 'sending', 'retry_wait', 'delivered', 'exhausted', 'skipped')),
    attempts       BIGINT  NOT NULL DEFAULT 0,
    next_at        BIGINT,
    lease_owner    BIGINT  NOT NULL DEFAULT 0,
    lease_until    BIGINT,
    last_class     TEXT    NOT NULL DEFAULT '',
    last_error     TEXT    NOT NULL DEFAULT '',
    finished_at    BIGINT,
    counted        BOOLEAN NOT NULL DEFAULT FALSE,
    first_class    TEXT,
    first_status   BIGINT,
    first_at       BIGINT,
    first_took_us  BIGINT,
    first_node     TEXT,
    first_url      TEXT,
    first_request  TEXT,
    first_response TEXT,
    first_body     BYTEA,
    first_error    TEXT
);
CREATE INDEX deliveries_due ON deliveries (recipient_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_subject ON deliveries (subject_id);
CREATE INDEX deliveries_untried ON deliveries (created_at)
    WHERE next_at IS NOT NULL AND attempts = 0 AND currency <> '';

-- The event of a delivery, which is stored with it.
CREATE VIEW delivery_events AS SELECT
    id, recipient_id AS merchant_id, subject_id, event_type AS type, version, coalesce(body, '') AS body, created_at
FROM deliveries WHERE version IS NOT NULL;

-- The first attempt of a delivery, which is stored with it.
CREATE VIEW first_attempts AS SELECT
    id, id AS delivery_id, recipient_id, CAST(1 AS BIGINT) AS number, coalesce(first_url, '') AS url, first_class AS class,
    first_status AS http_status, first_at AS started_at, first_took_us AS took_us, coalesce(first_node, '') AS node,
    coalesce(first_request, '') AS request_header, coalesce(first_response, '') AS response_header,
    coalesce(first_body, '') AS response_body, coalesce(first_error, '') AS error
FROM deliveries WHERE first_class IS NOT NULL;

CREATE TABLE endpoint_health (
    recipient_id   BIGINT  NOT NULL,
    endpoint       TEXT    NOT NULL,
    failures       BIGINT  NOT NULL,
    last_ok_at     BIGINT,
    last_failed_at BIGINT,
    last_error     TEXT    NOT NULL,
    disabled_at    BIGINT,
    reason         TEXT    NOT NULL,
    to_subscriber  BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (recipient_id, endpoint)
);
CREATE INDEX endpoint_health_failing ON endpoint_health (last_failed_at) WHERE failures > 0;
CREATE INDEX endpoint_health_disabled ON endpoint_health (disabled_at) WHERE disabled_at IS NOT NULL;

CREATE TABLE endpoint_waits (
    recipient_id BIGINT NOT NULL,
    origin       TEXT   NOT NULL,
    until        BIGINT NOT NULL,
    PRIMARY KEY (recipient_id, origin)
);
CREATE INDEX endpoint_waits_until ON endpoint_waits (until);

CREATE TABLE open_pings (
    delivery_id  BIGINT PRIMARY KEY,
    recipient_id BIGINT NOT NULL,
    until        BIGINT NOT NULL
);

CREATE TABLE breakers (
    owner_id      BIGINT  PRIMARY KEY,
    state         TEXT    NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    -- generation grows with every change: results of attempts that began before a change do not count after it.
    generation    BIGINT  NOT NULL DEFAULT 0,
    failures      BIGINT  NOT NULL DEFAULT 0,
    window_from   BIGINT  NOT NULL DEFAULT 0,
    window_ok     BIGINT  NOT NULL DEFAULT 0,
    window_failed BIGINT  NOT NULL DEFAULT 0,
    by_hand       BOOLEAN NOT NULL DEFAULT FALSE,
    cause         TEXT    NOT NULL DEFAULT '',
    changed_at    BIGINT  NOT NULL DEFAULT 0,
    open_until    BIGINT  NOT NULL DEFAULT 0,
    probe_owner   BIGINT  NOT NULL DEFAULT 0,
    probe_until   BIGINT  NOT NULL DEFAULT 0,
    updated_at    BIGINT  NOT NULL,
    owner_kind    TEXT    NOT NULL DEFAULT 'merchant' CHECK (owner_kind IN ('merchant', 'subscriber', 'supplier'))
);
CREATE INDEX breakers_unhealthy ON breakers (owner_id) WHERE state <> 'closed' OR failures > 0;
CREATE INDEX breakers_updated ON breakers (updated_at);

CREATE TABLE breaker_history (
    id         BIGINT PRIMARY KEY,
    owner_id   BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    from_state TEXT   NOT NULL,
    to_state   TEXT   NOT NULL,
    cause      TEXT   NOT NULL,
    failures   BIGINT NOT NULL,
    actor      TEXT   NOT NULL DEFAULT '',
    reason     TEXT   NOT NULL DEFAULT '',
    at         BIGINT NOT NULL,
    alerted_at BIGINT,
    owner_kind TEXT   NOT NULL DEFAULT 'merchant'
);
CREATE INDEX breaker_history_unalerted ON breaker_history (id) WHERE alerted_at IS NULL;
CREATE INDEX breaker_history_owner ON breaker_history (owner_id, id);

CREATE TABLE breaker_probes (
    owner_id    BIGINT PRIMARY KEY,
    generation  BIGINT NOT NULL,
    delivery_id BIGINT NOT NULL
);

-- The work of people and of the server: exceptions, approvals, batches, compensations, sweeps.

CREATE TABLE exceptions (
    id          BIGINT PRIMARY KEY,
    kind        TEXT   NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'resolved', 'failed', 'ignored')),
    supplier_id BIGINT NOT NULL DEFAULT 0,
    merchant_id BIGINT NOT NULL DEFAULT 0,
    order_id    BIGINT NOT NULL DEFAULT 0,
    order_no    TEXT   NOT NULL DEFAULT '',
    subject     TEXT   NOT NULL DEFAULT '',
    amount      BIGINT NOT NULL DEFAULT 0,
    currency    TEXT   NOT NULL DEFAULT '',
    detail      JSONB  NOT NULL,
    seen        BIGINT NOT NULL DEFAULT 1,
    opened_at   BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    resolved_at BIGINT,
    alerted_at  BIGINT,
    assignee    TEXT   NOT NULL DEFAULT '',
    occurred_at BIGINT NOT NULL DEFAULT 0,
    outcome     TEXT   NOT NULL DEFAULT '',
    reference   TEXT   NOT NULL DEFAULT '',
    callback_id BIGINT NOT NULL DEFAULT 0,
    payload     TEXT   NOT NULL DEFAULT '',
    version     BIGINT NOT NULL DEFAULT 1,
    decided_by  BIGINT NOT NULL DEFAULT 0,
    held_ref    TEXT   NOT NULL DEFAULT '',
    UNIQUE (kind, supplier_id, subject, order_no)
);
CREATE INDEX exceptions_order ON exceptions (order_no);
CREATE INDEX exceptions_kind ON exceptions (kind, state, id);
CREATE INDEX exceptions_unalerted ON exceptions (id) WHERE alerted_at IS NULL;
CREATE UNIQUE INDEX exceptions_dispute ON exceptions (supplier_id, subject) WHERE kind = 'dispute_opened';
CREATE INDEX exceptions_held ON exceptions (held_ref) WHERE held_ref <> '';
CREATE INDEX exceptions_of_kind ON exceptions (kind, id);
CREATE INDEX exceptions_open ON exceptions (id)
    WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_open_kind ON exceptions (kind, id)
    WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_open_merchant ON exceptions (merchant_id, id)
    WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_merchant ON exceptions (merchant_id, id);
CREATE INDEX exceptions_assignee ON exceptions (assignee, id) WHERE assignee <> '';
CREATE INDEX exceptions_resolved ON exceptions (id) WHERE state IN ('resolved');
CREATE INDEX exceptions_ignored ON exceptions (id) WHERE state IN ('ignored');
CREATE INDEX exceptions_ended ON exceptions (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX exceptions_open_subject ON exceptions (subject)
    WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_unknown_type ON exceptions (supplier_id, (detail->>'type'))
    WHERE kind = 'unknown_event' AND state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');

-- Whole messages of suppliers that an exception needs after their retention.
CREATE TABLE exception_callbacks (
    exception_id BIGINT NOT NULL,
    callback_id  BIGINT NOT NULL,
    received_at  BIGINT NOT NULL,
    trade_no     TEXT   NOT NULL,
    remote_addr  TEXT   NOT NULL,
    method       TEXT   NOT NULL,
    query        TEXT   NOT NULL,
    headers      TEXT   NOT NULL,
    body         BYTEA  NOT NULL,
    size         BIGINT NOT NULL, -- bytes of the whole body
    PRIMARY KEY (exception_id, callback_id)
);

CREATE TABLE approvals (
    id            BIGINT  PRIMARY KEY,
    action        TEXT    NOT NULL,
    object        TEXT    NOT NULL,
    object_id     TEXT    NOT NULL,
    order_no      TEXT    NOT NULL DEFAULT '', -- whose story shows it; '' = no order's
    merchant_id   BIGINT  NOT NULL DEFAULT 0, -- 0 = no merchant's
    version       BIGINT  NOT NULL,
    amount        BIGINT  NOT NULL,
    currency      TEXT    NOT NULL,
    params        TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    evidence      TEXT    NOT NULL,
    hash          TEXT    NOT NULL,
    maker         BIGINT  NOT NULL,
    checker       BIGINT,
    checker_reason TEXT    NOT NULL DEFAULT '',
    single_person BOOLEAN NOT NULL DEFAULT FALSE,
    second        BOOLEAN NOT NULL DEFAULT TRUE, -- it is a decision that two people make
    state         TEXT    NOT NULL CHECK (state IN ('waiting', 'approved', 'executing', 'done', 'failed', 'rejected', 'withdrawn', 'expired')),
    made_at       BIGINT  NOT NULL,
    expires_at    BIGINT  NOT NULL,
    decided_at    BIGINT,
    started_at    BIGINT,
    done_at       BIGINT,
    tries         BIGINT  NOT NULL DEFAULT 0,
    error         TEXT    NOT NULL DEFAULT '',
    result        TEXT    NOT NULL DEFAULT '',
    released_version BIGINT NOT NULL DEFAULT 0, -- of the object after a failure released it
    alerted_at    BIGINT, -- when it was last said that it waits
    maker_kind    TEXT    NOT NULL DEFAULT 'operator' CHECK (maker_kind IN ('operator', 'merchant')),
    live_answer   TEXT    NOT NULL DEFAULT '',
    live_contrary BOOLEAN NOT NULL DEFAULT FALSE,
    live_at       BIGINT,
    maker_role    TEXT    NOT NULL DEFAULT '',
    unverified    BOOLEAN NOT NULL DEFAULT FALSE,
    CHECK (checker IS NULL OR maker_kind <> 'operator' OR checker <> maker)
);
CREATE UNIQUE INDEX approvals_open ON approvals (object, object_id)
    WHERE state IN ('waiting', 'approved', 'executing');
CREATE INDEX approvals_state ON approvals (state, expires_at);
CREATE INDEX approvals_object ON approvals (object, object_id, id);
CREATE INDEX approvals_order ON approvals (order_no, id) WHERE order_no <> '';
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;

CREATE TABLE approval_rules (
    place      BIGINT PRIMARY KEY CHECK (place = 1),
    rules      TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE setting_changes (
    id     BIGINT PRIMARY KEY, -- the approval's id
    sealed TEXT   NOT NULL
);

-- One act on many rows: found by a filter or selected, frozen, shown, and then processed by
-- the server. The rows to process have the numbers 1 to to_do; all up to processed_to are done.
-- planned, result and drift are sums by outcome and currency.
CREATE TABLE batches (
    id              BIGINT PRIMARY KEY,
    action          TEXT   NOT NULL,
    object          TEXT   NOT NULL,
    filter          TEXT   NOT NULL, -- the list's address; '' = selected
    max_id          BIGINT NOT NULL, -- rows created later have a greater id
    made_by         TEXT   NOT NULL, -- as in the audit
    maker           BIGINT NOT NULL DEFAULT 0, -- the operator's id; 0 = a service
    made_at         BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    state           TEXT   NOT NULL CHECK (state IN ('planned', 'waiting', 'running', 'paused', 'stopped', 'done')),
    version         BIGINT NOT NULL DEFAULT 1,
    row_count       BIGINT NOT NULL,
    to_do           BIGINT NOT NULL,
    processed_to    BIGINT NOT NULL DEFAULT 0,
    steps           BIGINT NOT NULL DEFAULT 0,
    planned         TEXT   NOT NULL,
    result          TEXT   NOT NULL DEFAULT '{}',
    drift           TEXT   NOT NULL DEFAULT '{}',
    reason          TEXT   NOT NULL DEFAULT '',
    rate            BIGINT NOT NULL, -- rows per second
    approval_id     BIGINT NOT NULL DEFAULT 0,
    stopped_because TEXT   NOT NULL DEFAULT '',
    started_at      BIGINT,
    finished_at     BIGINT,
    lease_owner     BIGINT NOT NULL DEFAULT 0,
    lease_until     BIGINT NOT NULL DEFAULT 0,
    alerted_at      BIGINT -- when an alert said that it stopped by itself
);
CREATE INDEX batches_state ON batches (state, id);

CREATE TABLE batch_rows (
    batch_id  BIGINT NOT NULL,
    number    BIGINT NOT NULL,
    object    TEXT   NOT NULL,
    object_id BIGINT NOT NULL,
    order_no  TEXT   NOT NULL DEFAULT '',
    state     TEXT   NOT NULL CHECK (state IN ('waiting', 'done', 'skipped', 'failed')),
    outcome   TEXT   NOT NULL,
    cause     TEXT   NOT NULL DEFAULT '',
    amount    BIGINT NOT NULL DEFAULT 0,
    currency  TEXT   NOT NULL DEFAULT '',
    at        BIGINT, -- when it ended
    PRIMARY KEY (batch_id, number)
);
CREATE INDEX batch_rows_cause ON batch_rows (batch_id, cause, number) WHERE cause <> '';

CREATE TABLE compensations (
    id           BIGINT PRIMARY KEY,
    kind         TEXT   NOT NULL,
    cause        TEXT   NOT NULL,
    subject_kind TEXT   NOT NULL,
    subject_id   BIGINT NOT NULL,
    order_no     TEXT   NOT NULL DEFAULT '',
    merchant_id  BIGINT NOT NULL DEFAULT 0,
    supplier_id  BIGINT NOT NULL DEFAULT 0,
    lane         BIGINT NOT NULL, -- its supplier, merchant or kind; lanes run in turn
    amount       BIGINT NOT NULL DEFAULT 0,
    currency     TEXT   NOT NULL DEFAULT '',
    payload      TEXT   NOT NULL DEFAULT '{}',
    from_version BIGINT NOT NULL DEFAULT 0,
    state        TEXT   NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'dead', 'cancelled')),
    attempts     BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    next_at      BIGINT, -- when it is due; NULL = over
    lease_owner  BIGINT NOT NULL DEFAULT 0,
    lease_until  BIGINT NOT NULL DEFAULT 0,
    last_class   TEXT   NOT NULL DEFAULT '',
    last_error   TEXT   NOT NULL DEFAULT '',
    made_by      TEXT   NOT NULL,
    opened_at    BIGINT NOT NULL,
    finished_at  BIGINT
);
CREATE INDEX compensations_due ON compensations (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX compensations_lane ON compensations (lane, next_at) WHERE next_at IS NOT NULL;
CREATE UNIQUE INDEX compensations_open ON compensations (kind, subject_kind, subject_id, from_version)
    WHERE state IN ('waiting', 'running');
CREATE INDEX compensations_state ON compensations (state, id);
CREATE INDEX compensations_subject ON compensations (subject_id);
CREATE INDEX compensations_order ON compensations (order_no);
CREATE INDEX compensations_supplier ON compensations (supplier_id, id);
CREATE INDEX compensations_merchant ON compensations (merchant_id, id);

CREATE TABLE compensation_tries (
    id              BIGINT PRIMARY KEY,
    compensation_id BIGINT NOT NULL,
    number          BIGINT NOT NULL,
    at              BIGINT NOT NULL,
    took_us         BIGINT NOT NULL DEFAULT 0,
    class           TEXT   NOT NULL DEFAULT '',
    error           TEXT   NOT NULL DEFAULT '',
    call_id         BIGINT NOT NULL DEFAULT 0,
    UNIQUE (compensation_id, number)
);

CREATE TABLE sweeps (
    id          BIGINT PRIMARY KEY,
    night       BIGINT NOT NULL DEFAULT 0, -- the day of a nightly sweep, as 20261123; 0 = any other sweep
    began_at    BIGINT NOT NULL,
    ended_at    BIGINT,
    window_from BIGINT NOT NULL,
    "by"        TEXT   NOT NULL,
    reason      TEXT   NOT NULL DEFAULT '',
    node        TEXT   NOT NULL DEFAULT '',
    state       TEXT   NOT NULL CHECK (state IN ('running', 'done', 'missed', 'stopped')),
    looked_at   BIGINT NOT NULL DEFAULT 0,
    pushed      TEXT   NOT NULL DEFAULT '[]',
    differences TEXT   NOT NULL DEFAULT '[]',
    p99_ms      BIGINT,
    scan        BIGINT NOT NULL DEFAULT 0,
    after       BIGINT NOT NULL DEFAULT 0,
    turn        BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sweeps_running ON sweeps (state) WHERE state = 'running';
CREATE UNIQUE INDEX sweeps_night ON sweeps (night) WHERE night > 0;

-- Alerts and incidents.

CREATE TABLE alert_rules (
    name            TEXT    PRIMARY KEY,
    enabled         BOOLEAN NOT NULL,
    fire            BIGINT  NOT NULL,
    clear           BIGINT  NOT NULL,
    hold_s          BIGINT  NOT NULL,
    quiet_s         BIGINT  NOT NULL,
    next_message_at BIGINT  NOT NULL DEFAULT 0,
    updated_at      BIGINT  NOT NULL,
    window_s        BIGINT  NOT NULL DEFAULT 0
);

CREATE TABLE alerts (
    id          BIGINT PRIMARY KEY,
    rule        TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('firing', 'resolved', 'event')),
    value       BIGINT NOT NULL,
    count       BIGINT NOT NULL,
    opened_at   BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    resolved_at BIGINT,
    announce_at BIGINT,
    sums        TEXT   NOT NULL DEFAULT '',
    incident_id BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX alerts_firing ON alerts (rule, subject) WHERE state = 'firing';
CREATE INDEX alerts_latest ON alerts (rule, subject, id);
CREATE INDEX alerts_to_announce ON alerts (announce_at) WHERE announce_at IS NOT NULL;
CREATE INDEX alerts_of_incident ON alerts (incident_id, id) WHERE incident_id <> 0;

CREATE TABLE alert_messages (
    id          BIGINT PRIMARY KEY,
    target      TEXT   NOT NULL,
    title       TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('waiting', 'sent', 'failed')),
    attempts    BIGINT NOT NULL DEFAULT 0,
    next_at     BIGINT,
    last_error  TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    finished_at BIGINT,
    html        TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX alert_messages_due ON alert_messages (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE incidents (
    id            BIGINT PRIMARY KEY,
    rule          TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    state         TEXT   NOT NULL CHECK (state IN ('open', 'acknowledged', 'snoozed', 'over')),
    firings       BIGINT NOT NULL,
    value         BIGINT NOT NULL,
    sums          TEXT   NOT NULL,
    assignee      TEXT   NOT NULL DEFAULT '',
    opened_at     BIGINT NOT NULL,
    fired_at      BIGINT NOT NULL,
    cleared_at    BIGINT,
    snoozed_until BIGINT,
    over_at       BIGINT,
    version       BIGINT NOT NULL
);
CREATE UNIQUE INDEX incidents_running ON incidents (rule, subject) WHERE over_at IS NULL;
CREATE INDEX incidents_ended ON incidents (over_at) WHERE over_at IS NOT NULL;

CREATE TABLE incident_events (
    id          BIGINT PRIMARY KEY,
    incident_id BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    detail      TEXT   NOT NULL,
    at          BIGINT NOT NULL
);
CREATE INDEX incident_events_of ON incident_events (incident_id, id);

-- Figures.

CREATE TABLE daily_reports (
    id      BIGINT PRIMARY KEY,
    day     TEXT   NOT NULL,
    zone    TEXT   NOT NULL,
    figures TEXT   NOT NULL,
    mails   TEXT   NOT NULL DEFAULT '',
    made_at BIGINT NOT NULL,
    UNIQUE (day, zone)
);

CREATE TABLE report_backlog (
    start BIGINT PRIMARY KEY,
    due   BIGINT NOT NULL,
    held  BIGINT NOT NULL DEFAULT 0 -- for a breaker
);

CREATE TABLE report_callbacks (
    start       BIGINT NOT NULL,
    supplier_id BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (start, supplier_id, outcome)
);

CREATE TABLE report_calls (
    supplier_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    op          TEXT   NOT NULL,
    class       TEXT   NOT NULL,
    bucket      BIGINT NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (supplier_id, start, op, class, bucket)
);
CREATE INDEX report_calls_start ON report_calls (start);

CREATE TABLE report_deltas (
    id   BIGINT PRIMARY KEY,
    body TEXT   NOT NULL
);

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

CREATE TABLE report_hours (
    recipient_id BIGINT NOT NULL,
    start        BIGINT NOT NULL,
    ok           BIGINT NOT NULL,
    retried      BIGINT NOT NULL,
    failed       BIGINT NOT NULL,
    took_us      BIGINT NOT NULL,
    took         TEXT   NOT NULL,
    lag          TEXT   NOT NULL,
    PRIMARY KEY (recipient_id, start)
);
CREATE INDEX report_hours_start ON report_hours (start, recipient_id);

CREATE TABLE report_minutes (
    recipient_id BIGINT NOT NULL,
    start        BIGINT NOT NULL,
    ok           BIGINT NOT NULL,
    retried      BIGINT NOT NULL,
    failed       BIGINT NOT NULL,
    took_us      BIGINT NOT NULL,
    took         TEXT   NOT NULL,
    lag          TEXT   NOT NULL,
    PRIMARY KEY (recipient_id, start)
);
CREATE INDEX report_minutes_start ON report_minutes (start, recipient_id);

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

CREATE TABLE report_recipients (
    recipient_id   BIGINT PRIMARY KEY,
    last_ok_at     BIGINT NOT NULL,
    last_failed_at BIGINT NOT NULL
);

CREATE TABLE report_risk (
    start    BIGINT NOT NULL,
    part     TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    orders   BIGINT NOT NULL,
    amount   BIGINT NOT NULL,
    PRIMARY KEY (start, part, currency)
);

CREATE TABLE report_suppliers (
    supplier_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (supplier_id, start, outcome)
);
CREATE INDEX report_suppliers_start ON report_suppliers (start);

CREATE TABLE report_unnotified (
    merchant_id BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    orders      BIGINT NOT NULL,
    amount      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, currency)
);

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

CREATE TABLE report_waits (
    span_s BIGINT NOT NULL,
    start  BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    orders BIGINT NOT NULL,
    PRIMARY KEY (span_s, start, bucket)
);

-- Where the counters begin.

INSERT INTO settings (name, value) VALUES ('config_version', 1);
INSERT INTO settings (name, value) VALUES ('report_fold', 0);
-- No open order is due earlier. A payment does not change next_at, so that its index is not
-- written; reads skip the entries of orders that are over.
INSERT INTO settings (name, value) VALUES ('orders_due_from', 0);
INSERT INTO settings (name, value) VALUES ('claims_checked', 0);
