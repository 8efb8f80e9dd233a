ALTER TABLE operators DROP COLUMN invite_hash;
ALTER TABLE operators DROP COLUMN signed_in_at;
