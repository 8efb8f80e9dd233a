DROP INDEX audit_action;
DROP TABLE inbox;
DROP TABLE view_watches;
DROP TABLE views;
