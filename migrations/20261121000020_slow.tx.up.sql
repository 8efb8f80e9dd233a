-- The merchants that the process notifies in its slow pool, as a list of ids; empty =
-- none. It counts while the process runs.
ALTER TABLE nodes ADD COLUMN slow TEXT NOT NULL DEFAULT '';
