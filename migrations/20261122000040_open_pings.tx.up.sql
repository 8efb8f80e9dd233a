-- Pings whose requester is waiting: one-attempt deliveries, claimed by the node that can
-- send them. A row exists for the seconds in which its requester waits. These deliveries
-- have no due time, and nodes of earlier versions do not read this table, so that none
-- treats a ping as work. From here on only earlier versions use the table pings.
CREATE TABLE open_pings (
    delivery_id BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    until       BIGINT NOT NULL
);
