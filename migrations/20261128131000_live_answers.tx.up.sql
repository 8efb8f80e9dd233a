-- What the supplier said when it was last queried for a decision.
ALTER TABLE approvals ADD COLUMN live_answer TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN live_contrary BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE approvals ADD COLUMN live_at BIGINT;
