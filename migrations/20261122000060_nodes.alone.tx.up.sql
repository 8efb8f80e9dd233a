-- Older programs start on any newer schema, but cannot work with the migrations that
-- follow. They do not set newest_migration when they join: the check refuses their row,
-- and its name tells the reason. There is no other row when this runs.
ALTER TABLE nodes ADD COLUMN newest_migration TEXT NOT NULL DEFAULT ''
    CONSTRAINT this_program_is_older_than_the_schema CHECK (newest_migration <> '');
