-- When each key was used last: keys of merchants, tokens of services, and personal ones.
CREATE TABLE key_uses (
    key_hash TEXT   PRIMARY KEY,
    used_at  BIGINT NOT NULL -- to the hour
);
