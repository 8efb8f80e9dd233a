-- The version of the settings that the process uses; 0 = it has not said so, as an
-- older program never does.
ALTER TABLE nodes ADD COLUMN config_version BIGINT NOT NULL DEFAULT 0;
