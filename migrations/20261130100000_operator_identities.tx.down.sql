ALTER TABLE sessions DROP COLUMN issuer;
DROP TABLE operator_identities;
