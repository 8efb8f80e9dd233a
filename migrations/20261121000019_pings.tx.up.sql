-- Pings of merchants that connect to us, requested on a node to which they are not
-- connected. A row exists for the seconds in which the requester waits for the answer.
-- taken_by is the run of the node that sends the ping, 0 = none yet; answer is the
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
