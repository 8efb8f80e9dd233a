-- Devices from which operators have signed in: browser, system and block of addresses, hashed.
CREATE TABLE operator_devices (
    operator_id BIGINT NOT NULL,
    device      TEXT   NOT NULL,
    seen_at     BIGINT NOT NULL,
    PRIMARY KEY (operator_id, device)
);
-- SQLite changes no CHECK: the table is made again.
CREATE TABLE inbox_new (
    id          BIGINT  PRIMARY KEY,
    operator_id BIGINT  NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('mention', 'view', 'device')),
    actor       TEXT    NOT NULL,
    object      TEXT    NOT NULL,
    object_id   TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    rows        BIGINT  NOT NULL,
    more        BOOLEAN NOT NULL,
    at          BIGINT  NOT NULL,
    read_at     BIGINT
);
INSERT INTO inbox_new SELECT id, operator_id, kind, actor, object, object_id, text, rows, more, at, read_at FROM inbox WHERE kind IN ('mention', 'view', 'device');
DROP TABLE inbox;
ALTER TABLE inbox_new RENAME TO inbox;
CREATE INDEX inbox_operator ON inbox (operator_id, id);
CREATE INDEX inbox_unread ON inbox (operator_id, id) WHERE read_at IS NULL;
