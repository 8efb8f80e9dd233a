DROP INDEX batch_rows_cause;
