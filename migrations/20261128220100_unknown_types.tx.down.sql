DROP INDEX exceptions_unknown_type;
