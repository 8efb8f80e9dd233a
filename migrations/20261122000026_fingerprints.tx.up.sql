-- What must agree between nodes: the ids of their master keys, the ranges that their
-- notifications may reach, and their build. Empty = the process does not publish it.
ALTER TABLE nodes ADD COLUMN key_ids TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN ranges TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN build TEXT NOT NULL DEFAULT '';

-- Where the process runs: host and process id.
ALTER TABLE nodes ADD COLUMN process TEXT NOT NULL DEFAULT '';

-- What the process cannot send through a fault of ours, as a JSON list; empty =
-- nothing. It counts while the process lives.
ALTER TABLE nodes ADD COLUMN faults TEXT NOT NULL DEFAULT '';
