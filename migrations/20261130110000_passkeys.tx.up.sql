CREATE TABLE operator_passkeys (
    id          TEXT   PRIMARY KEY, -- of the credential, base64url
    operator_id BIGINT NOT NULL,
    credential  TEXT   NOT NULL,    -- public key, counter and flags, JSON
    device      TEXT   NOT NULL,    -- on which it was added
    created_at  BIGINT NOT NULL,
    used_at     BIGINT
);
CREATE INDEX operator_passkeys_operator ON operator_passkeys (operator_id);
