ALTER TABLE operators DROP COLUMN zone;
ALTER TABLE operators DROP COLUMN theme;
ALTER TABLE operators DROP COLUMN language;
DROP TABLE sessions;
