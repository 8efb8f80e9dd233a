DROP INDEX refused_callbacks_supplier;
DROP TABLE report_calls;
DROP TABLE report_suppliers;
