-- The one delivery that a person wants to be a breaker's probe. It counts while the
-- breaker is half open in this very generation and no node holds the probe: what an
-- older change left here says nothing.
CREATE TABLE breaker_probes (
    merchant_id BIGINT PRIMARY KEY,
    generation  BIGINT NOT NULL,
    delivery_id BIGINT NOT NULL
);

-- The number of the audit's row of what the form did; 0 = it left none.
ALTER TABLE form_keys ADD COLUMN act BIGINT NOT NULL DEFAULT 0;
