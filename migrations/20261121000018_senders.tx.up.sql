-- Whether a process sends notifications: these processes share a merchant's rate. Older
-- programs do not set it, and count as senders.
ALTER TABLE nodes ADD COLUMN sends BOOLEAN NOT NULL DEFAULT TRUE;
