-- Notifications that somebody wants to send again together: found by a filter,
-- frozen, and shown before anything is done. deliveries holds the ids of those
-- that would be sent, in the order in which they are; next is how many of them
-- were taken up. planned and done say how many, and how much, came to which end.
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

-- Who has taken an exception in hand.
ALTER TABLE exceptions ADD COLUMN assignee TEXT NOT NULL DEFAULT '';

-- How many rows of a list an operator wants on a page; 0 = no choice.
ALTER TABLE operators ADD COLUMN page_rows BIGINT NOT NULL DEFAULT 0;
