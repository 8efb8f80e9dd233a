-- Alerts: rules, alerts and their messages.

-- Leases for work that one node does at a time; the lease of a dead node expires.
CREATE TABLE leases (
    name  TEXT   PRIMARY KEY,
    owner BIGINT NOT NULL,
    until BIGINT NOT NULL
);

-- A rule without a row has its defaults.
CREATE TABLE alert_rules (
    name            TEXT    PRIMARY KEY,
    enabled         BOOLEAN NOT NULL,
    fire            BIGINT  NOT NULL,
    clear           BIGINT  NOT NULL,
    hold_s          BIGINT  NOT NULL,
    quiet_s         BIGINT  NOT NULL,
    next_message_at BIGINT  NOT NULL DEFAULT 0,
    updated_at      BIGINT  NOT NULL
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
    announce_at BIGINT
);
-- One problem has one row until it is resolved.
CREATE UNIQUE INDEX alerts_firing ON alerts (rule, subject) WHERE state = 'firing';
CREATE INDEX alerts_latest ON alerts (rule, subject, id);
CREATE INDEX alerts_to_announce ON alerts (announce_at) WHERE announce_at IS NOT NULL;

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
    finished_at BIGINT
);
CREATE INDEX alert_messages_due ON alert_messages (next_at) WHERE next_at IS NOT NULL;

-- When an alert about the exception was raised; NULL = not yet. Existing exceptions raise
-- none.
ALTER TABLE exceptions ADD COLUMN alerted_at BIGINT;
UPDATE exceptions SET alerted_at = opened_at;
CREATE INDEX exceptions_unheard ON exceptions (id) WHERE alerted_at IS NULL;
