ALTER TABLE api_tokens DROP COLUMN merchants;
ALTER TABLE operators DROP COLUMN merchants;
