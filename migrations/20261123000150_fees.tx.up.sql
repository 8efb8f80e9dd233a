-- The rules of fees as they were in each version of the settings: what a merchant pays, by
-- supplier, and what a supplier costs, as of all. An order names the version in which it was
-- made: a new rule touches none that exists. Rows are never changed or removed.
CREATE TABLE fee_rules (
    owner_id BIGINT NOT NULL, -- of the merchant or the supplier
    version  BIGINT NOT NULL, -- of the settings, from which on it holds
    rules    TEXT   NOT NULL, -- JSON, by supplier; '{}' = none
    PRIMARY KEY (owner_id, version)
);
ALTER TABLE orders ADD COLUMN fee_rule BIGINT; -- the version of the settings; NULL = there were no fees

-- Limits of a merchant as JSON by currency; '' = the defaults.
ALTER TABLE merchants ADD COLUMN limits TEXT NOT NULL DEFAULT '';
ALTER TABLE merchants ADD COLUMN refund_window BIGINT NOT NULL DEFAULT 0; -- µs; 0 = the default
