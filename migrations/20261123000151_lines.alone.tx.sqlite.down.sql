DELETE FROM settings WHERE name = 'lines_below';
ALTER TABLE accounts DROP COLUMN unlined_credits;
ALTER TABLE accounts DROP COLUMN unlined;
ALTER TABLE accounts DROP COLUMN folded_at;
ALTER TABLE accounts DROP COLUMN credits;
ALTER TABLE accounts DROP COLUMN last_line;
DROP TABLE account_lines;
