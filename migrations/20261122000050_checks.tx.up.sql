-- The steps of a callback as text, one line each: a code if it passed, a code and its
-- arguments if it failed. For older rows, steps has them as JSON.
ALTER TABLE callbacks ADD COLUMN checks TEXT NOT NULL DEFAULT '';
ALTER TABLE refused_callbacks ADD COLUMN checks TEXT NOT NULL DEFAULT '';
