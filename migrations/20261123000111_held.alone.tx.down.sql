DELETE FROM settings WHERE name = 'exceptions_to_hold';
DROP INDEX exceptions_held;
ALTER TABLE order_items DROP COLUMN short;
