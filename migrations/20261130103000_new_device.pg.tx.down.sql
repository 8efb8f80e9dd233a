DELETE FROM inbox WHERE kind = 'device';
ALTER TABLE inbox DROP CONSTRAINT inbox_kind_check;
ALTER TABLE inbox ADD CONSTRAINT inbox_kind_check CHECK (kind IN ('mention', 'view'));
DROP TABLE operator_devices;
