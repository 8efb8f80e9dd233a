-- What PostgreSQL has in a way of its own. The tables that grow for ever are partitioned by month,
-- since ids begin with the time: a month that nobody keeps is dropped as a whole.

CREATE TABLE order_history (
    id          BIGINT NOT NULL,
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
) PARTITION BY RANGE (order_id);
CREATE INDEX order_history_id ON order_history (id);

-- Tries to be paid at a supplier.
CREATE TABLE payment_attempts (
    id                BIGINT NOT NULL,
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
    PRIMARY KEY (order_id, id),
    UNIQUE (account_id, supplier_ref)
);
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
) PARTITION BY RANGE (id);
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
) PARTITION BY RANGE (id);
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
) PARTITION BY RANGE (id);
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
);

-- A payment makes an order's row a quarter longer, and changes no column that has an index. With
-- room for that in its page, the new version stays there, and no index is written.
ALTER TABLE orders SET (fillfactor = 78, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02);

-- A delivery is written twice within milliseconds, the second time two thirds larger: at 40 % its
-- page has room for all of its rows' second versions.
ALTER TABLE deliveries SET (fillfactor = 40);

-- Acts are neither changed nor deleted, not even by a mistake of the program. The owner of the
-- table can drop this trigger; the chain then reveals changes.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of the audit are neither changed nor deleted';
END
$$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
