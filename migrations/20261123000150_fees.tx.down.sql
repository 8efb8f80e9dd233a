ALTER TABLE merchants DROP COLUMN refund_window;
ALTER TABLE merchants DROP COLUMN limits;
ALTER TABLE orders DROP COLUMN fee_rule;
DROP TABLE fee_rules;
