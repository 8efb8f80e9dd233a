-- How often a message that was taken came again, and when last. The first few repeats
-- are kept raw among the callbacks; kept says how many.
CREATE TABLE callback_repeats (
    callback_id  BIGINT PRIMARY KEY,
    seen         BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    last_addr    TEXT   NOT NULL,
    kept         BIGINT NOT NULL DEFAULT 0
);
