-- Filters of lists that operators keep by a name, for themselves or for everybody who may open
-- the list. A deleted view can be restored for a day.
CREATE TABLE views (
    id         BIGINT PRIMARY KEY,
    owner_id   BIGINT  NOT NULL, -- operator
    list       TEXT    NOT NULL, -- 'orders'
    name       TEXT    NOT NULL,
    was_name   TEXT    NOT NULL DEFAULT '', -- before it was renamed
    query      TEXT    NOT NULL, -- the filter as in the URL
    shared     BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX views_name ON views (owner_id, list, name) WHERE deleted_at IS NULL;
CREATE INDEX views_shared ON views (list) WHERE shared AND deleted_at IS NULL;
CREATE INDEX views_deleted ON views (deleted_at) WHERE deleted_at IS NOT NULL;

-- Who is alerted when rows appear in a view.
CREATE TABLE view_watches (
    view_id     BIGINT NOT NULL,
    operator_id BIGINT NOT NULL,
    newest      BIGINT NOT NULL, -- key of the newest row that was counted
    empty_since BIGINT,          -- since when no row matched; NULL = some do
    told_at     BIGINT NOT NULL, -- of the last message; 0 = none
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (view_id, operator_id)
);
CREATE INDEX view_watches_operator ON view_watches (operator_id);

-- Messages to operators in the console.
CREATE TABLE inbox (
    id          BIGINT PRIMARY KEY,
    operator_id BIGINT NOT NULL,
    kind        TEXT   NOT NULL CHECK (kind IN ('mention', 'view')),
    actor       TEXT   NOT NULL, -- who mentioned the operator; '' = nobody
    object      TEXT   NOT NULL, -- order, exception or view
    object_id   TEXT   NOT NULL,
    text        TEXT   NOT NULL, -- the note, or the name of the view
    rows        BIGINT NOT NULL, -- of a view
    more        BOOLEAN NOT NULL,
    at          BIGINT NOT NULL,
    read_at     BIGINT
);
CREATE INDEX inbox_operator ON inbox (operator_id, id);
CREATE INDEX inbox_unread ON inbox (operator_id, id) WHERE read_at IS NULL;

CREATE INDEX audit_action ON audit (action, number);
