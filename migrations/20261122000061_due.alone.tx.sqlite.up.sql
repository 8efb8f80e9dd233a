-- A payment or a closing does not change an order's next_at, so that its index is not
-- written; reads skip the entries of orders that are over. Reading begins here: no open
-- order has an earlier next_at.
INSERT INTO settings (name, value) VALUES ('orders_due_from', 0);
