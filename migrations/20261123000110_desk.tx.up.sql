-- What a decision about an exception needs: the verified message, the version that a proposal
-- is about, the approval that ended the exception, and the ledger entry with its money.
ALTER TABLE exceptions ADD COLUMN callback_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN payload TEXT NOT NULL DEFAULT '';
ALTER TABLE exceptions ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE exceptions ADD COLUMN decided_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN held_ref TEXT NOT NULL DEFAULT '';
