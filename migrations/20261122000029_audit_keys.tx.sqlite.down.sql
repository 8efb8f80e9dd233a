DROP TRIGGER audit_no_replace;
DROP TRIGGER audit_no_delete;
DROP TRIGGER audit_no_update;
DROP TABLE retired_keys;
ALTER TABLE audit DROP COLUMN key_id;
