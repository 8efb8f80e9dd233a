-- Why rows of a batch ended, for the causes on its page. No state: the update of a row that
-- simply ends touches no index.
CREATE INDEX batch_rows_cause ON batch_rows (batch_id, cause, number) WHERE cause <> '';
