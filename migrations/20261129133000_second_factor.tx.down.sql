DROP TABLE recovery_codes;
ALTER TABLE sessions DROP COLUMN device;
ALTER TABLE sessions DROP COLUMN second_at;
ALTER TABLE operators DROP COLUMN totp_step;
ALTER TABLE operators DROP COLUMN totp_since;
ALTER TABLE operators DROP COLUMN totp_secret;
