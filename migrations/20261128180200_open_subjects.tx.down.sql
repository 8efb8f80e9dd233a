DROP INDEX exceptions_open_subject;
