-- When the event in an exception's detail happened, by the supplier's clock (Unix µs):
-- messages may arrive in another order. 0 = the last message counts.
ALTER TABLE exceptions ADD COLUMN occurred_at BIGINT NOT NULL DEFAULT 0;

-- One dispute is one row, even if its first message found no order.
CREATE UNIQUE INDEX exceptions_dispute ON exceptions (supplier_id, subject) WHERE kind = 'dispute_opened';
