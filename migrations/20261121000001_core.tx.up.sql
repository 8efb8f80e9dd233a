-- Plain SQL for both engines. Times are Unix microseconds (UTC) in BIGINT. Ids are made
-- in Go and grow with time. Tables of the hot path have no foreign keys: a key check
-- would lock the merchant's row for every order.

CREATE TABLE nodes (
    slot       BIGINT PRIMARY KEY CHECK (slot BETWEEN 0 AND 1023),
    name       TEXT   NOT NULL,
    boot       BIGINT NOT NULL UNIQUE,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO settings (name, value) VALUES ('config_version', 1);

CREATE TABLE supplier_accounts (
    id   BIGINT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE suppliers (
    id          BIGINT  PRIMARY KEY,
    code        TEXT    NOT NULL UNIQUE,
    kind        TEXT    NOT NULL,
    account_id  BIGINT  NOT NULL REFERENCES supplier_accounts (id),
    enabled     BOOLEAN NOT NULL,
    allow_ips   JSONB   NOT NULL,
    config      JSONB   NOT NULL,
    fingerprint TEXT    NOT NULL DEFAULT '',
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE merchants (
    id              BIGINT PRIMARY KEY,
    code            TEXT   NOT NULL UNIQUE,
    name            TEXT   NOT NULL,
    api_key_hash    TEXT   UNIQUE,
    signing_secrets JSONB  NOT NULL,
    notify          JSONB  NOT NULL,
    fingerprint     TEXT   NOT NULL DEFAULT '',
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    disabled_at     BIGINT
);

CREATE TABLE operators (
    id            BIGINT  PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    role          TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    must_change   BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    disabled_at   BIGINT
);

CREATE TABLE api_tokens (
    id         BIGINT PRIMARY KEY,
    name       TEXT   NOT NULL UNIQUE,
    scope      TEXT   NOT NULL,
    token_hash TEXT   NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE orders (
    id                BIGINT PRIMARY KEY,
    order_no          TEXT   NOT NULL UNIQUE,
    merchant_id       BIGINT NOT NULL,
    out_trade_no      TEXT   NOT NULL,
    supplier_id       BIGINT NOT NULL,
    amount            BIGINT NOT NULL CHECK (amount > 0),
    currency          TEXT   NOT NULL,
    exponent          BIGINT NOT NULL,
    fee_amount        BIGINT NOT NULL DEFAULT 0 CHECK (fee_amount >= 0),
    refunded_amount   BIGINT NOT NULL DEFAULT 0 CHECK (refunded_amount >= 0),
    subject           TEXT   NOT NULL,
    notify_url        TEXT   NOT NULL DEFAULT '',
    request_digest    TEXT   NOT NULL,
    status            TEXT   NOT NULL CHECK (status IN ('pending', 'paying', 'closing', 'paid', 'failed', 'closed')),
    version           BIGINT NOT NULL,
    supplier_trade_no TEXT   NOT NULL DEFAULT '',
    paid_amount       BIGINT NOT NULL DEFAULT 0 CHECK (paid_amount >= 0),
    close_reason      TEXT   NOT NULL DEFAULT '',
    close_tries       BIGINT NOT NULL DEFAULT 0,
    has_items         BOOLEAN NOT NULL DEFAULT FALSE,
    created_at        BIGINT NOT NULL,
    expires_at        BIGINT NOT NULL,
    next_at           BIGINT,
    paid_at           BIGINT,
    closed_at         BIGINT,
    UNIQUE (merchant_id, out_trade_no)
);
-- Only open orders have a next_at, so that the index has only the work ahead.
CREATE INDEX orders_due ON orders (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE order_items (
    order_id BIGINT NOT NULL,
    sku_id   BIGINT NOT NULL,
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_id, sku_id)
);

CREATE TABLE order_history (
    id          BIGINT PRIMARY KEY,
    order_id    BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    from_status TEXT   NOT NULL,
    to_status   TEXT   NOT NULL,
    cause       TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    source_id   BIGINT NOT NULL DEFAULT 0,
    created_at  BIGINT NOT NULL,
    UNIQUE (order_id, version)
);

CREATE TABLE payment_attempts (
    id                BIGINT PRIMARY KEY,
    order_id          BIGINT NOT NULL,
    account_id        BIGINT NOT NULL,
    supplier_ref      TEXT   NOT NULL,
    supplier_trade_no TEXT   NOT NULL DEFAULT '',
    status            TEXT   NOT NULL CHECK (status IN ('created', 'submitted', 'unknown', 'succeeded', 'succeeded_surplus', 'failed', 'closed')),
    amount            BIGINT NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    UNIQUE (account_id, supplier_ref)
);
CREATE INDEX payment_attempts_order ON payment_attempts (order_id);
CREATE UNIQUE INDEX payment_attempts_settled ON payment_attempts (order_id) WHERE status = 'succeeded';
-- The trade number is first: an account's whole history has the same account_id.
CREATE UNIQUE INDEX payment_attempts_trade ON payment_attempts (supplier_trade_no, account_id)
    WHERE status IN ('succeeded', 'succeeded_surplus') AND supplier_trade_no <> '';

CREATE TABLE callbacks (
    id          BIGINT PRIMARY KEY,
    supplier_id BIGINT NOT NULL,
    order_id    BIGINT NOT NULL,
    order_no    TEXT   NOT NULL,
    trade_no    TEXT   NOT NULL,
    event_key   TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    outcome     TEXT   NOT NULL,
    received_at BIGINT NOT NULL,
    remote_addr TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    query       TEXT   NOT NULL,
    headers     TEXT   NOT NULL,
    body        BYTEA  NOT NULL,
    steps       JSONB  NOT NULL
);
CREATE INDEX callbacks_order ON callbacks (order_no);

CREATE TABLE callback_keys (
    account_id  BIGINT NOT NULL,
    event_key   TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    callback_id BIGINT NOT NULL,
    PRIMARY KEY (account_id, event_key, digest)
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
    steps       JSONB  NOT NULL
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

CREATE TABLE accounts (
    id       BIGINT PRIMARY KEY,
    code     TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    balance  BIGINT NOT NULL DEFAULT 0,
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
CREATE INDEX transfers_journal ON transfers (journal_id);

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
    id          BIGINT PRIMARY KEY,
    event_id    BIGINT NOT NULL,
    merchant_id BIGINT NOT NULL,
    subject_id  BIGINT NOT NULL,
    event_type  TEXT   NOT NULL,
    channel     TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('queued', 'sending', 'retry_wait', 'delivered', 'exhausted', 'skipped')),
    attempts    BIGINT NOT NULL DEFAULT 0,
    next_at     BIGINT,
    lease_owner BIGINT NOT NULL DEFAULT 0,
    last_class  TEXT   NOT NULL DEFAULT '',
    last_error  TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    finished_at BIGINT
);
-- next_at is when a row needs attention: its due time while it waits, the end of its
-- lease while it is being sent, and NULL when it is over.
CREATE INDEX deliveries_due ON deliveries (merchant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_subject ON deliveries (subject_id);

CREATE TABLE notify_attempts (
    id              BIGINT PRIMARY KEY,
    delivery_id     BIGINT NOT NULL,
    merchant_id     BIGINT NOT NULL,
    number          BIGINT NOT NULL,
    url             TEXT   NOT NULL,
    class           TEXT   NOT NULL,
    http_status     BIGINT NOT NULL,
    started_at      BIGINT NOT NULL,
    took_us         BIGINT NOT NULL,
    node            TEXT   NOT NULL,
    request_header  TEXT   NOT NULL,
    response_header TEXT   NOT NULL,
    response_body   BYTEA  NOT NULL,
    error           TEXT   NOT NULL
);
CREATE INDEX notify_attempts_delivery ON notify_attempts (delivery_id);

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
    UNIQUE (kind, supplier_id, subject, order_no)
);
CREATE INDEX exceptions_order ON exceptions (order_no);
CREATE INDEX exceptions_kind ON exceptions (kind, state, id);
