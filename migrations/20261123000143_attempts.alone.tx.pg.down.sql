SET LOCAL statement_timeout = 0;
ALTER TABLE payment_attempts DROP CONSTRAINT payment_attempts_pkey, ADD PRIMARY KEY (id);
CREATE INDEX payment_attempts_order ON payment_attempts (order_id);
