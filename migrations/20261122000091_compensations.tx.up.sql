-- Work that must be repeated: a message, a call, a write, or a flow from its start.
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
