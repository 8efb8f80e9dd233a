ALTER TABLE approvals DROP CONSTRAINT approvals_check;
ALTER TABLE approvals DROP COLUMN maker_kind;
ALTER TABLE approvals ADD CONSTRAINT approvals_check CHECK (checker IS NULL OR checker <> maker);
