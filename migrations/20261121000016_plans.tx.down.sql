ALTER TABLE operators DROP COLUMN page_rows;
ALTER TABLE exceptions DROP COLUMN assignee;
DROP TABLE plans;
