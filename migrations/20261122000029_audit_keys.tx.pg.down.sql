DROP TRIGGER audit_append_only ON audit;
DROP FUNCTION audit_append_only();
DROP TABLE retired_keys;
ALTER TABLE audit DROP COLUMN key_id;
