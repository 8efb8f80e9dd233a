-- A payment or a closing leaves an order's next_at as it is: the index on it is not
-- touched, and what is over is passed over. This is where reading begins. No open order
-- has an earlier next_at.
INSERT INTO settings (name, value) VALUES ('orders_due_from', 0);
