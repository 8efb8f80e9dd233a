-- The master key in use, by its id: all that is sealed now is sealed under it. No row =
-- no process of this version has opened the database yet.
CREATE TABLE master_key (
    place      BIGINT PRIMARY KEY CHECK (place = 1),
    key_id     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
