-- Sweeps: runs that check everything unfinished again. pushed and differences are JSON. scan
-- and after are the progress of a running sweep; turn is which process may continue it.
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
