-- How often an accepted message was repeated, and when last. The first few repeats are
-- stored as callbacks; kept is their number.
CREATE TABLE callback_repeats (
    callback_id  BIGINT PRIMARY KEY,
    seen         BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    last_addr    TEXT   NOT NULL,
    kept         BIGINT NOT NULL DEFAULT 0
);
