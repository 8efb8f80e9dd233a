-- Sessions of the console. Only the browser has the token; the hash that is stored here
-- opens nothing.
CREATE TABLE sessions (
    token_hash  TEXT   PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    remote_addr TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL
);
CREATE INDEX sessions_operator ON sessions (operator_id);
CREATE INDEX sessions_started ON sessions (started_at);

-- An operator's preferences for the console; '' = as the browser or the installation
-- has it.
ALTER TABLE operators ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN theme TEXT NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN zone TEXT NOT NULL DEFAULT '';
