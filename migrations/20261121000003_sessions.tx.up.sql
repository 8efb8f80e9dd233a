-- Sessions of the console. The token itself is with the browser alone; the hash
-- that stands here opens nothing.
CREATE TABLE sessions (
    token_hash  TEXT   PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    remote_addr TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL
);
CREATE INDEX sessions_operator ON sessions (operator_id);
CREATE INDEX sessions_started ON sessions (started_at);

-- What an operator chose for the console; '' leaves it to the browser or to the
-- installation.
ALTER TABLE operators ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN theme TEXT NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN zone TEXT NOT NULL DEFAULT '';
