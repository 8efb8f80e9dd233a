ALTER TABLE callbacks DROP COLUMN checks;
ALTER TABLE refused_callbacks DROP COLUMN checks;
