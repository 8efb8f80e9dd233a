ALTER TABLE nodes DROP COLUMN left_out;
