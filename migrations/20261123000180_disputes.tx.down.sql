ALTER TABLE orders DROP COLUMN disputed_amount;
DROP TABLE dispute_evidence;
DROP TABLE dispute_history;
DROP TABLE disputes;
