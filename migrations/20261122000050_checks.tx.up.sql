-- The steps of a callback as text, one line each: a code where it passed, a code and its
-- arguments where it failed. steps holds those of older rows, as JSON.
ALTER TABLE callbacks ADD COLUMN checks TEXT NOT NULL DEFAULT '';
ALTER TABLE refused_callbacks ADD COLUMN checks TEXT NOT NULL DEFAULT '';
