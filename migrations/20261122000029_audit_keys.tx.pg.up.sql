-- The hash of a row uses a key that is not in the database; key_id is the master key
-- from which it is derived. Older rows, and rows that an older program still writes,
-- have none.
ALTER TABLE audit ADD COLUMN key_id TEXT NOT NULL DEFAULT '';

-- What is kept of removed master keys, sealed under the current one: enough to verify
-- what was written under them.
CREATE TABLE retired_keys (
    key_id TEXT PRIMARY KEY,
    sealed TEXT NOT NULL
);

-- Acts cannot be changed or deleted, not even by a mistake of the program. The owner of
-- the table can drop this trigger; the chain then reveals changes.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of the audit are neither changed nor deleted';
END
$$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
