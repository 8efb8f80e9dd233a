-- The id of the master key in use, under which secrets are sealed. No row = no process
-- of this version has opened the database yet.
CREATE TABLE master_key (
    place      BIGINT PRIMARY KEY CHECK (place = 1),
    key_id     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
