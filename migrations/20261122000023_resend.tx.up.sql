-- The delivery that an operator chose as a breaker's probe. It counts while the breaker
-- is half open in the same generation and no node holds the probe; rows of other
-- generations are ignored.
CREATE TABLE breaker_probes (
    merchant_id BIGINT PRIMARY KEY,
    generation  BIGINT NOT NULL,
    delivery_id BIGINT NOT NULL
);

-- The number of the audit row of the form's act; 0 = it has none.
ALTER TABLE form_keys ADD COLUMN act BIGINT NOT NULL DEFAULT 0;
