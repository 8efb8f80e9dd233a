-- Pings of merchants that connect to us, asked on a node to which they are not
-- connected. A row lives for the seconds in which somebody waits for the answer.
-- taken_by is the run of the node that sends it, 0 = nobody yet; answer is the
-- attempt as JSON, empty = none yet.
CREATE TABLE pings (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    endpoint    TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    until       BIGINT NOT NULL,
    taken_by    BIGINT NOT NULL DEFAULT 0,
    answer      TEXT   NOT NULL DEFAULT ''
);
