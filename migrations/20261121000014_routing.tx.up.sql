-- Several endpoints and channels per merchant, and subscriptions.

-- endpoint is the endpoint of a delivery; empty = the channel's addresses in turn.
-- house marks deliveries to a subscriber, whose id is in merchant_id. shared marks
-- deliveries of an event with several that the merchant must get: its money counts
-- once.
ALTER TABLE deliveries ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN house BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE deliveries ADD COLUMN shared BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE deliveries SET last_class = 'no_address' WHERE status = 'skipped';

-- Subscribers: other systems of the operator. merchants = a list of codes, or null for
-- all.
CREATE TABLE subscriptions (
    id              BIGINT PRIMARY KEY,
    code            TEXT   NOT NULL UNIQUE,
    name            TEXT   NOT NULL,
    merchants       JSONB  NOT NULL,
    signing_secrets JSONB  NOT NULL,
    notify          JSONB  NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    disabled_at     BIGINT
);

-- The health of one endpoint of a merchant or a subscriber. No row = healthy.
CREATE TABLE endpoint_health (
    owner_id       BIGINT NOT NULL,
    endpoint       TEXT   NOT NULL,
    failures       BIGINT NOT NULL,
    last_ok_at     BIGINT,
    last_failed_at BIGINT,
    last_error     TEXT   NOT NULL,
    disabled_at    BIGINT,
    reason         TEXT   NOT NULL,
    PRIMARY KEY (owner_id, endpoint)
);
-- Every node reads these rows; usually there are few.
CREATE INDEX endpoint_health_failing ON endpoint_health (last_failed_at) WHERE failures > 0;
CREATE INDEX endpoint_health_disabled ON endpoint_health (disabled_at) WHERE disabled_at IS NOT NULL;
