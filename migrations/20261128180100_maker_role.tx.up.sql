-- A role is that of the proposal's time: merchants and commands have none.
ALTER TABLE approvals ADD COLUMN maker_role TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN unverified BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE approvals SET maker_role = COALESCE((SELECT op.role FROM operators AS op WHERE op.id = approvals.maker), '') WHERE maker_kind = 'operator';
