-- What payouts need of a merchant: a key of their own, stored hashed, the addresses that may use
-- it, and the fees. '' = none.
ALTER TABLE merchants ADD COLUMN payout_key_hash TEXT;
ALTER TABLE merchants ADD COLUMN payout_ips TEXT NOT NULL DEFAULT ''; -- JSON array of CIDRs
ALTER TABLE merchants ADD COLUMN payout_fees TEXT NOT NULL DEFAULT ''; -- JSON, by supplier
CREATE UNIQUE INDEX merchants_payout_key ON merchants (payout_key_hash) WHERE payout_key_hash IS NOT NULL;

ALTER TABLE suppliers ADD COLUMN payout_query_after BIGINT NOT NULL DEFAULT 0; -- µs; 0 = the default
ALTER TABLE suppliers ADD COLUMN payout_repeat BOOLEAN NOT NULL DEFAULT FALSE;

-- The accounts that payouts may go to. What a row pays to never changes: a change disables the
-- row and adds one, so that payouts keep theirs. The newest row of a code counts.
CREATE TABLE payout_accounts (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    code        TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    holder      TEXT   NOT NULL,
    number      TEXT   NOT NULL, -- sealed
    number_hash TEXT   NOT NULL, -- MAC of merchant, kind and number
    last4       TEXT   NOT NULL, -- of the number
    bank        TEXT   NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    disabled_at BIGINT
);
CREATE UNIQUE INDEX payout_accounts_code ON payout_accounts (merchant_id, code) WHERE disabled_at IS NULL;
CREATE INDEX payout_accounts_merchant ON payout_accounts (merchant_id, code, id);
CREATE INDEX payout_accounts_number ON payout_accounts (number_hash);
