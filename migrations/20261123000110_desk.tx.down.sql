ALTER TABLE exceptions DROP COLUMN held_ref;
ALTER TABLE exceptions DROP COLUMN decided_by;
ALTER TABLE exceptions DROP COLUMN version;
ALTER TABLE exceptions DROP COLUMN payload;
ALTER TABLE exceptions DROP COLUMN callback_id;
