-- Money that fits no order is booked in suspense from now on: programs before this one would
-- pay orders with it from the supplier's account, and book it twice. What is open already is
-- booked by the first start of the server, from the newest on, until nothing is left.
ALTER TABLE order_items ADD COLUMN short BIGINT NOT NULL DEFAULT 0;
CREATE INDEX exceptions_held ON exceptions (held_ref) WHERE held_ref <> '';
INSERT INTO settings (name, value) SELECT 'exceptions_to_hold', max(id) FROM exceptions HAVING max(id) IS NOT NULL;
