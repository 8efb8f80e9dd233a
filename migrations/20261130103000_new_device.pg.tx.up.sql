-- Devices from which operators have signed in: browser, system and block of addresses, hashed.
CREATE TABLE operator_devices (
    operator_id BIGINT NOT NULL,
    device      TEXT   NOT NULL,
    seen_at     BIGINT NOT NULL,
    PRIMARY KEY (operator_id, device)
);
ALTER TABLE inbox DROP CONSTRAINT inbox_kind_check;
ALTER TABLE inbox ADD CONSTRAINT inbox_kind_check CHECK (kind IN ('mention', 'view', 'device'));
