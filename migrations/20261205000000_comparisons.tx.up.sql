-- How the orders here compared with those of another system, in shadow mode.
CREATE TABLE comparisons (
    id         BIGINT PRIMARY KEY,
    made_at    BIGINT NOT NULL,
    file       TEXT   NOT NULL,
    same       BIGINT NOT NULL,
    differ     BIGINT NOT NULL,
    only_there BIGINT NOT NULL,
    only_here  BIGINT NOT NULL,
    kept       BIGINT NOT NULL -- how many of those that differ have a row
);

CREATE TABLE comparison_rows (
    id             BIGINT PRIMARY KEY,
    comparison_id  BIGINT NOT NULL,
    order_no       TEXT   NOT NULL,
    side           TEXT   NOT NULL, -- both, here or there
    here_status    TEXT   NOT NULL, -- '' = there was no such order
    here_paid      BIGINT NOT NULL,
    here_trade_no  TEXT   NOT NULL,
    there_status   TEXT   NOT NULL,
    there_paid     BIGINT NOT NULL,
    there_trade_no TEXT   NOT NULL
);
CREATE INDEX comparison_rows_of ON comparison_rows (comparison_id, id);
