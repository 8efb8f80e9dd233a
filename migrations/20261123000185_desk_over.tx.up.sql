-- What is over on the desk, newest first, however old it is: what was resolved, and what is ignored.
CREATE INDEX exceptions_resolved ON exceptions (id) WHERE state IN ('resolved');
CREATE INDEX exceptions_ignored ON exceptions (id) WHERE state IN ('ignored');
