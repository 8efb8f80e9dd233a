DROP TABLE roles;
