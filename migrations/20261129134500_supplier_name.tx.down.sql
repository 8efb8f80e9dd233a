ALTER TABLE suppliers DROP COLUMN name;
