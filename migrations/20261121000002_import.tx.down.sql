DROP TABLE import_orders;
DROP TABLE import_runs;
