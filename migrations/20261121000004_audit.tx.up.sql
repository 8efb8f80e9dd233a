-- Every act of an operator, in one chain: each row's hash covers the row before it, so
-- that a row that is removed or changed later is detected.
CREATE TABLE audit (
    number      BIGINT PRIMARY KEY,
    at          BIGINT NOT NULL,
    actor       TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    object      TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    params      TEXT   NOT NULL,
    remote_addr TEXT   NOT NULL,
    hash        TEXT   NOT NULL
);
CREATE INDEX audit_object ON audit (object, object_id, number);
CREATE INDEX audit_actor ON audit (actor, number);
