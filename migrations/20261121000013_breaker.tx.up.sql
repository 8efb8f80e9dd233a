-- One row per merchant that has ever failed; all nodes share it. A merchant without a
-- row is healthy.
CREATE TABLE breakers (
    merchant_id   BIGINT  PRIMARY KEY,
    state         TEXT    NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    -- generation grows with every change: results of attempts that began before a
    -- change do not count after it.
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
    updated_at    BIGINT  NOT NULL
);
CREATE INDEX breakers_unwell ON breakers (merchant_id) WHERE state <> 'closed' OR failures > 0;
CREATE INDEX breakers_updated ON breakers (updated_at);

CREATE TABLE breaker_history (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    generation  BIGINT NOT NULL,
    from_state  TEXT   NOT NULL,
    to_state    TEXT   NOT NULL,
    cause       TEXT   NOT NULL,
    failures    BIGINT NOT NULL,
    actor       TEXT   NOT NULL DEFAULT '',
    reason      TEXT   NOT NULL DEFAULT '',
    at          BIGINT NOT NULL,
    alerted_at  BIGINT
);
CREATE INDEX breaker_history_merchant ON breaker_history (merchant_id, id);
CREATE INDEX breaker_history_unheard ON breaker_history (id) WHERE alerted_at IS NULL;
