-- Acts of operators. schedule_from is how many attempts a delivery had when an operator
-- sent it again: its schedule starts again from there.
ALTER TABLE deliveries ADD COLUMN schedule_from BIGINT NOT NULL DEFAULT 0;

-- A form's key is used by the first request that has it: a double click, the back
-- button or a repeat has no second effect.
CREATE TABLE form_keys (
    form_key TEXT   PRIMARY KEY,
    at       BIGINT NOT NULL
);
CREATE INDEX form_keys_at ON form_keys (at);
