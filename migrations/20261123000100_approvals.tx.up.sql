-- Decisions that need two people. params and evidence are canonical JSON (RFC 8785); hash
-- covers what is decided. The maker and the checker are ids of operators, which a rename does
-- not change.
CREATE TABLE approvals (
    id          BIGINT PRIMARY KEY,
    action      TEXT   NOT NULL,
    object      TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    order_no    TEXT   NOT NULL DEFAULT '', -- the order that it is about; '' = none
    merchant_id BIGINT NOT NULL DEFAULT 0,  -- 0 = none
    version     BIGINT NOT NULL,
    amount      BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    params      TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    evidence    TEXT   NOT NULL,
    hash        TEXT   NOT NULL,
    maker       BIGINT NOT NULL,
    checker     BIGINT,
    checked     TEXT   NOT NULL DEFAULT '', -- the checker's reason
    alone       BOOLEAN NOT NULL DEFAULT FALSE,
    second      BOOLEAN NOT NULL DEFAULT TRUE,  -- two people must decide it
    state       TEXT   NOT NULL CHECK (state IN ('waiting', 'approved', 'executing', 'done', 'failed', 'rejected', 'withdrawn', 'expired')),
    made_at     BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    decided_at  BIGINT,
    started_at  BIGINT,
    done_at     BIGINT,
    tries       BIGINT NOT NULL DEFAULT 0,
    error       TEXT   NOT NULL DEFAULT '',
    result      TEXT   NOT NULL DEFAULT '',
    freed       BIGINT NOT NULL DEFAULT 0, -- version of the object after a failure freed it
    alerted_at  BIGINT, -- when an alert last said that it waits
    CHECK (checker IS NULL OR checker <> maker)
);
CREATE UNIQUE INDEX approvals_open ON approvals (object, object_id) WHERE state IN ('waiting', 'approved', 'executing');
CREATE INDEX approvals_state ON approvals (state, expires_at);
CREATE INDEX approvals_object ON approvals (object, object_id, id);
CREATE INDEX approvals_order ON approvals (order_no, id) WHERE order_no <> '';
