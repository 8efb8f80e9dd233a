-- A payment or a closing does not change an order's next_at, so that its index is not
-- written; reads skip the entries of orders that are over. Reading begins here: no open
-- order has an earlier next_at.
INSERT INTO settings (name, value) VALUES ('orders_due_from', 0);

-- No index has a column that a payment changes. If the page has room for the next
-- version of a row, PostgreSQL writes no index at all.
ALTER TABLE orders SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
