-- Calls to suppliers. A row is written before its call and completed after it: after a crash,
-- an incomplete row means that the call may have been made.
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

ALTER TABLE orders ADD COLUMN query_tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN asked_at BIGINT;

ALTER TABLE payment_attempts ADD COLUMN supplier_id BIGINT NOT NULL DEFAULT 0; -- 0 in older rows: the order's
ALTER TABLE payment_attempts ADD COLUMN kind TEXT NOT NULL DEFAULT '';         -- kind of value
ALTER TABLE payment_attempts ADD COLUMN value TEXT NOT NULL DEFAULT '';        -- what the buyer needs; sealed if it is secret
ALTER TABLE payment_attempts ADD COLUMN external_id TEXT NOT NULL DEFAULT '';  -- the supplier's id of the started payment

-- Whether the source of a change is a callback or a call; empty in older rows: a callback.
ALTER TABLE order_history ADD COLUMN source_kind TEXT NOT NULL DEFAULT '';
