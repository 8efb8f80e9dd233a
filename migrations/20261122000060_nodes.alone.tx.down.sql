ALTER TABLE nodes DROP COLUMN newest_migration;
