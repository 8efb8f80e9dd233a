ALTER TABLE alerts DROP COLUMN sums;
ALTER TABLE exceptions DROP COLUMN reference;
ALTER TABLE exceptions DROP COLUMN outcome;
