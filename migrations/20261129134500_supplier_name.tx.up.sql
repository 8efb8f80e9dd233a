ALTER TABLE suppliers ADD COLUMN name TEXT NOT NULL DEFAULT ''; -- '' = its code
