-- Pings that somebody waits for: one-attempt deliveries, claimed by the node that can
-- send them. A row lives for the seconds in which its requester waits. Their deliveries
-- have no due moment, and nodes of earlier versions do not read this table, so that none
-- takes a ping for work. The table pings is used by earlier versions alone from here on.
CREATE TABLE open_pings (
    delivery_id BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    until       BIGINT NOT NULL
);
