ALTER TABLE approvals DROP COLUMN live_at;
ALTER TABLE approvals DROP COLUMN live_contrary;
ALTER TABLE approvals DROP COLUMN live_answer;
