ALTER TABLE operators ADD COLUMN merchants TEXT NOT NULL DEFAULT ''; -- codes, joined by commas; '' = all merchants
ALTER TABLE api_tokens ADD COLUMN merchants TEXT NOT NULL DEFAULT '';
