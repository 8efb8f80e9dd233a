ALTER TABLE operators ADD COLUMN totp_secret TEXT; -- sealed
ALTER TABLE operators ADD COLUMN totp_since BIGINT; -- NULL = there is no second factor
ALTER TABLE operators ADD COLUMN totp_step BIGINT NOT NULL DEFAULT 0; -- of the last code that was used: none is used twice
ALTER TABLE sessions ADD COLUMN second_at BIGINT; -- when the second factor was last given in it
ALTER TABLE sessions ADD COLUMN device TEXT NOT NULL DEFAULT ''; -- browser and system, as the browser calls itself
CREATE TABLE recovery_codes (
    code_hash   TEXT   PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    used_at     BIGINT
);
CREATE INDEX recovery_codes_operator ON recovery_codes (operator_id);
