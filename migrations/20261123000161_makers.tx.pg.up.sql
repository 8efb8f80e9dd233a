-- A merchant may ask for what two people of the house decide: a person is compared by kind
-- and id.
ALTER TABLE approvals ADD COLUMN maker_kind TEXT NOT NULL DEFAULT 'operator' CHECK (maker_kind IN ('operator', 'merchant'));
ALTER TABLE approvals DROP CONSTRAINT approvals_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_check CHECK (checker IS NULL OR maker_kind <> 'operator' OR checker <> maker);
