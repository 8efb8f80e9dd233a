-- What must be the same on all nodes: the ids of the master keys, the ranges that
-- notifications may reach, and the build. Empty = the process does not publish it.
ALTER TABLE nodes ADD COLUMN key_ids TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN ranges TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN build TEXT NOT NULL DEFAULT '';

-- Where the process runs: host and process id.
ALTER TABLE nodes ADD COLUMN process TEXT NOT NULL DEFAULT '';

-- What the process cannot send because of a fault of ours, as a JSON list; empty =
-- nothing. It counts while the process runs.
ALTER TABLE nodes ADD COLUMN faults TEXT NOT NULL DEFAULT '';
