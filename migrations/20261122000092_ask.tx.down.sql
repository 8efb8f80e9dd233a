ALTER TABLE merchants DROP COLUMN resend_when_back;
ALTER TABLE suppliers DROP COLUMN ask_pending;
ALTER TABLE suppliers DROP COLUMN query_rate;
ALTER TABLE suppliers DROP COLUMN query_after;
