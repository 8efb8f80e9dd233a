-- The roles of an installation besides the built-in ones: roles: of the apply file.
CREATE TABLE roles (
    id          BIGINT PRIMARY KEY,
    code        TEXT   NOT NULL UNIQUE, -- its name
    may         TEXT   NOT NULL,        -- permissions, joined by commas
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    disabled_at BIGINT
);
