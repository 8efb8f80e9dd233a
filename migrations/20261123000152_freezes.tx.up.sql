-- What two people froze of a merchant's money, and when it was lifted. While a row is not
-- lifted the merchant draws nothing.
CREATE TABLE freezes (
    approval_id BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount >= 0), -- minor units
    at          BIGINT NOT NULL,
    lifted_at   BIGINT
);
CREATE INDEX freezes_merchant ON freezes (merchant_id, currency) WHERE lifted_at IS NULL;
