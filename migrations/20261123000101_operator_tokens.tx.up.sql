-- Personal tokens: an operator's key for the API. Only a hash of it is stored.
CREATE TABLE operator_tokens (
    id          BIGINT PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    token_hash  TEXT   NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX operator_tokens_operator ON operator_tokens (operator_id);
