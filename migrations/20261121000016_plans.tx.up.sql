-- Notifications that an operator wants to send again together: found by a filter,
-- frozen, and shown before anything is done. deliveries has the ids of those to be
-- sent, in their order; next is how many of them were processed. planned and done are
-- counts and sums by outcome.
CREATE TABLE plans (
    id          BIGINT PRIMARY KEY,
    made_by     TEXT   NOT NULL,
    made_at     BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('planned', 'running', 'done', 'stopped')),
    filter      TEXT   NOT NULL,
    below       BIGINT NOT NULL,
    deliveries  TEXT   NOT NULL,
    planned     TEXT   NOT NULL,
    done        TEXT   NOT NULL,
    next        BIGINT NOT NULL DEFAULT 0,
    finished_at BIGINT
);
CREATE INDEX plans_made ON plans (made_at);

-- The assignee of an exception; '' = unassigned.
ALTER TABLE exceptions ADD COLUMN assignee TEXT NOT NULL DEFAULT '';

-- An operator's rows per page of a list; 0 = the default.
ALTER TABLE operators ADD COLUMN page_rows BIGINT NOT NULL DEFAULT 0;
