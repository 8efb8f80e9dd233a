-- When a one-time password ends; NULL where the password is not one, or was given by
-- a program before this: that one ends a day after the row was changed last.
ALTER TABLE operators ADD COLUMN password_expires_at BIGINT;

-- Tokens of before there were scopes to choose from: "monitor" let them act, too, and
-- does until they are revoked. A program of before goes on making such tokens.
ALTER TABLE api_tokens ADD COLUMN before_scopes BOOLEAN NOT NULL DEFAULT TRUE;
