-- A payment or a closing leaves an order's next_at as it is: the index on it is not
-- touched, and what is over is passed over. This is where reading begins. No open order
-- has an earlier next_at.
INSERT INTO settings (name, value) VALUES ('orders_due_from', 0);

-- No index holds a column that a payment changes. With
-- room in its page for the next version of a row, PostgreSQL writes no index at all.
ALTER TABLE orders SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
