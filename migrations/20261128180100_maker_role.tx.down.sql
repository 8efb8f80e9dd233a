ALTER TABLE approvals DROP COLUMN unverified;
ALTER TABLE approvals DROP COLUMN maker_role;
