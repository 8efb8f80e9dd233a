ALTER TABLE operators ADD COLUMN signed_in_at BIGINT; -- last
ALTER TABLE operators ADD COLUMN invite_hash TEXT; -- of the link by which the password is set; expires like a one-time password
