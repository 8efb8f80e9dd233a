-- How a supplier may be queried; times in µs.
ALTER TABLE suppliers ADD COLUMN query_after BIGINT NOT NULL DEFAULT 120000000;
ALTER TABLE suppliers ADD COLUMN query_rate BIGINT NOT NULL DEFAULT 50;
ALTER TABLE suppliers ADD COLUMN ask_pending BOOLEAN NOT NULL DEFAULT TRUE;

-- Whether notifications that were given up while a merchant was down are sent once more when
-- it is back.
ALTER TABLE merchants ADD COLUMN resend_when_back BOOLEAN NOT NULL DEFAULT TRUE;
