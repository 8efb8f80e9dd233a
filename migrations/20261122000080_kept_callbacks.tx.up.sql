-- Copies of the callbacks of exceptions that were still open when the callbacks' retention
-- ended: of bounded size, a few per exception.
CREATE TABLE exception_callbacks (
    exception_id BIGINT NOT NULL,
    callback_id  BIGINT NOT NULL,
    received_at  BIGINT NOT NULL,
    trade_no     TEXT   NOT NULL,
    remote_addr  TEXT   NOT NULL,
    method       TEXT   NOT NULL,
    query        TEXT   NOT NULL,
    headers      TEXT   NOT NULL,
    body         BYTEA  NOT NULL,
    size         BIGINT NOT NULL, -- bytes of the whole body
    PRIMARY KEY (exception_id, callback_id)
);
