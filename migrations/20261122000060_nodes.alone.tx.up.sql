-- Programs before this one start on whatever newer schema they find, and cannot work with
-- those that follow. They name no migration of theirs when they join: the check refuses
-- their row, with its own name as the cause. There is no other row when this runs.
ALTER TABLE nodes ADD COLUMN newest_migration TEXT NOT NULL DEFAULT ''
    CONSTRAINT this_program_is_older_than_the_schema CHECK (newest_migration <> '');
