ALTER TABLE order_history DROP COLUMN source_kind;
ALTER TABLE payment_attempts DROP COLUMN external_id;
ALTER TABLE payment_attempts DROP COLUMN value;
ALTER TABLE payment_attempts DROP COLUMN kind;
ALTER TABLE payment_attempts DROP COLUMN supplier_id;
ALTER TABLE orders DROP COLUMN asked_at;
ALTER TABLE orders DROP COLUMN query_tries;
DROP TABLE supplier_calls;
