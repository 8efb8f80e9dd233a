-- When a one-time password expires; NULL if the password is not one, or was created by
-- an older program: then it expires a day after the last change of the row.
ALTER TABLE operators ADD COLUMN password_expires_at BIGINT;

-- Tokens from the time before scopes could be chosen: their scope "monitor" also lets
-- them act, until they are revoked. Older programs continue to create such tokens.
ALTER TABLE api_tokens ADD COLUMN before_scopes BOOLEAN NOT NULL DEFAULT TRUE;
