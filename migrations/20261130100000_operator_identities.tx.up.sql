-- Who an operator is at a provider of sign-ins. One person there is one operator here.
CREATE TABLE operator_identities (
    issuer      TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    operator_id BIGINT NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
ALTER TABLE sessions ADD COLUMN issuer TEXT NOT NULL DEFAULT ''; -- of the provider that opened it; '' = a password did
