-- What SQLite has in a way of its own.

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
    source_kind TEXT   NOT NULL DEFAULT '',
    UNIQUE (order_id, version)
);

-- Tries to be paid at a supplier.
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
    supplier_id       BIGINT NOT NULL DEFAULT 0,
    kind              TEXT   NOT NULL DEFAULT '',
    value             TEXT   NOT NULL DEFAULT '',
    external_id       TEXT   NOT NULL DEFAULT '',
    UNIQUE (account_id, supplier_ref)
);
CREATE INDEX payment_attempts_order ON payment_attempts (order_id);
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
    steps       TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX callbacks_order ON callbacks (order_no);

CREATE TABLE notify_attempts (
    id              BIGINT PRIMARY KEY,
    delivery_id     BIGINT NOT NULL,
    recipient_id    BIGINT NOT NULL,
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

CREATE TABLE supplier_calls (
    id          BIGINT PRIMARY KEY,
    supplier_id BIGINT NOT NULL,
    order_id    BIGINT NOT NULL,
    op          TEXT   NOT NULL,
    reference   TEXT   NOT NULL,
    call_key    TEXT   NOT NULL DEFAULT '',
    state       TEXT   NOT NULL CHECK (state IN ('begun', 'ended')),
    class       TEXT   NOT NULL DEFAULT '',
    status      TEXT   NOT NULL DEFAULT '', -- what the answer says: paid, closed, unknown, …
    http_status BIGINT NOT NULL DEFAULT 0,
    request     TEXT   NOT NULL DEFAULT '',
    answer      TEXT   NOT NULL DEFAULT '',
    started_at  BIGINT NOT NULL,
    took_us     BIGINT,
    node        TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX supplier_calls_order ON supplier_calls (order_id);
CREATE INDEX supplier_calls_supplier ON supplier_calls (supplier_id, id);

-- The lines of each account in the order in which they were folded, each with the balance after
-- it and the credits up to it: between two lines, their difference is the sum of the credits. id is
-- that of the transfer, or one above the line before where that is greater: it grows in every
-- account, so that the lines of a day are a range of ids.
CREATE TABLE account_lines (
    account_id  BIGINT NOT NULL,
    id          BIGINT NOT NULL,
    transfer_id BIGINT NOT NULL,
    balance     BIGINT NOT NULL,
    credits     BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) WITHOUT ROWID;

-- Acts are neither changed nor deleted, not even by a mistake of the program. The owner of the
-- table can drop these triggers; the chain then reveals changes.
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
