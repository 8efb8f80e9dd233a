-- Several ways to reach a merchant, and the house's own systems.

-- endpoint names the one address of a delivery; empty = the channel's addresses in
-- turn. house marks deliveries to one of the house's own systems, whose id stands
-- in merchant_id. shared marks those whose event has several that a merchant must
-- get: its money counts once.
ALTER TABLE deliveries ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN house BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE deliveries ADD COLUMN shared BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE deliveries SET last_class = 'no_address' WHERE status = 'skipped';

-- The house's own systems. merchants = a list of codes, or null for all.
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

-- How one address of a merchant or a subscription does. No row = well.
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
-- What every node looks at: few rows, or much is wrong.
CREATE INDEX endpoint_health_failing ON endpoint_health (last_failed_at) WHERE failures > 0;
CREATE INDEX endpoint_health_disabled ON endpoint_health (disabled_at) WHERE disabled_at IS NOT NULL;
