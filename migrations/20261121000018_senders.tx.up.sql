-- Whether a process sends notifications: those that do share a merchant's rate. A
-- program that does not say so is an older one, and counts.
ALTER TABLE nodes ADD COLUMN sends BOOLEAN NOT NULL DEFAULT TRUE;
