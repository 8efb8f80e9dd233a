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
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
-- INSERT OR REPLACE deletes without running the trigger above.
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'rows of the audit are neither changed nor deleted');
END;
