-- Attempts are found by their order; one index does for that and for what is read by id.
SET LOCAL statement_timeout = 0;
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_pkey, ADD PRIMARY KEY (order_id, id);
DROP INDEX payment_attempts_order;
