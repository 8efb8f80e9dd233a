-- Until when an address of a recipient (origin = scheme, host and port) gets nothing, because it
-- answered 429 or 503 with Retry-After. No row = at once. Every node reads these rows; there are
-- few, and they end within an hour.
CREATE TABLE endpoint_waits (
    recipient_id BIGINT NOT NULL,
    origin       TEXT   NOT NULL,
    until        BIGINT NOT NULL,
    PRIMARY KEY (recipient_id, origin)
);
CREATE INDEX endpoint_waits_until ON endpoint_waits (until);
