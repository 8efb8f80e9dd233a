DROP INDEX exceptions_ignored;
DROP INDEX exceptions_resolved;
