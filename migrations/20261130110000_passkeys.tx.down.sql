DROP TABLE operator_passkeys;
