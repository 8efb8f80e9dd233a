ALTER TABLE api_tokens DROP COLUMN before_scopes;
ALTER TABLE operators DROP COLUMN password_expires_at;
