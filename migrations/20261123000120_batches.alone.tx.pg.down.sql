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
DROP TABLE batch_rows;
DROP TABLE batches;
