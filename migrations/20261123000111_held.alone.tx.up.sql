-- From now on, money that fits no order is booked in suspense. Older programs would pay orders
-- with it from the supplier's account and so book it twice. The first start of the server books
-- the money of exceptions that are already open, newest first.
ALTER TABLE order_items ADD COLUMN short BIGINT NOT NULL DEFAULT 0;
CREATE INDEX exceptions_held ON exceptions (held_ref) WHERE held_ref <> '';
INSERT INTO settings (name, value) SELECT 'exceptions_to_hold', max(id) FROM exceptions HAVING max(id) IS NOT NULL;
