-- The merchants that the process tells in its slow pool, as a list of ids; empty =
-- none. It counts while the process lives.
ALTER TABLE nodes ADD COLUMN slow TEXT NOT NULL DEFAULT '';
