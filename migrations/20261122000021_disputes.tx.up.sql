-- When what an exception's detail says happened, by the supplier's clock (Unix µs):
-- messages may come in another order. 0 = the last one counts.
ALTER TABLE exceptions ADD COLUMN occurred_at BIGINT NOT NULL DEFAULT 0;

-- One dispute is one row, also where its first message found no order.
CREATE UNIQUE INDEX exceptions_dispute ON exceptions (supplier_id, subject) WHERE kind = 'dispute_opened';
