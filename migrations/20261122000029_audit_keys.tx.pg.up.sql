-- The hash of a row is made with a key that is not in the database; key_id names the
-- master key that it is derived from. Rows of before, and those that an older program
-- writes meanwhile, have none.
ALTER TABLE audit ADD COLUMN key_id TEXT NOT NULL DEFAULT '';

-- What remains of master keys that were taken out: enough to check what was written
-- under them, sealed under the current one.
CREATE TABLE retired_keys (
    key_id TEXT PRIMARY KEY,
    sealed TEXT NOT NULL
);

-- Nobody changes or deletes an act, not even the program by mistake. Whoever owns the
-- table can drop this; the chain finds what is done then.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of the audit are neither changed nor deleted';
END
$$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
