-- A merchant may ask for what two people of the house decide: a person is compared by kind
-- and id. SQLite changes no CHECK of a table that exists.
CREATE TABLE approvals_new (
    id          BIGINT PRIMARY KEY,
    action      TEXT   NOT NULL,
    object      TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    order_no    TEXT   NOT NULL DEFAULT '', -- whose story shows it; '' = no order's
    merchant_id BIGINT NOT NULL DEFAULT 0,  -- 0 = no merchant's
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
    second      BOOLEAN NOT NULL DEFAULT TRUE,  -- it is a decision that two people make
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
    alerted_at  BIGINT, -- when it was last said that it waits
    maker_kind  TEXT   NOT NULL DEFAULT 'operator' CHECK (maker_kind IN ('operator', 'merchant')),
    CHECK (checker IS NULL OR maker_kind <> 'operator' OR checker <> maker)
);
INSERT INTO approvals_new (id, action, object, object_id, order_no, merchant_id, version, amount, currency, params, reason, evidence, hash, maker, checker, checked, alone, second, state, made_at, expires_at, decided_at, started_at, done_at, tries, error, result, freed, alerted_at) SELECT id, action, object, object_id, order_no, merchant_id, version, amount, currency, params, reason, evidence, hash, maker, checker, checked, alone, second, state, made_at, expires_at, decided_at, started_at, done_at, tries, error, result, freed, alerted_at FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_new RENAME TO approvals;
CREATE UNIQUE INDEX approvals_open ON approvals (object, object_id) WHERE state IN ('waiting', 'approved', 'executing');
CREATE INDEX approvals_state ON approvals (state, expires_at);
CREATE INDEX approvals_object ON approvals (object, object_id, id);
CREATE INDEX approvals_order ON approvals (order_no, id) WHERE order_no <> '';
