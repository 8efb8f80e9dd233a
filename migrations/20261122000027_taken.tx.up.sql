-- The version of the settings that the process uses; 0 = unknown, as for older programs.
ALTER TABLE nodes ADD COLUMN config_version BIGINT NOT NULL DEFAULT 0;
