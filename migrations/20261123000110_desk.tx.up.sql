-- What a decision about an exception needs: the message as it was verified, the version that
-- a proposal is about, the approval that ended it, and the ledger entry that holds its money.
ALTER TABLE exceptions ADD COLUMN callback_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN payload TEXT NOT NULL DEFAULT '';
ALTER TABLE exceptions ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE exceptions ADD COLUMN decided_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN held_ref TEXT NOT NULL DEFAULT '';
