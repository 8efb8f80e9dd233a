-- The installation's rules for decisions: at most one row, the section approval: of the apply
-- file as JSON. No row = the defaults.
CREATE TABLE approval_rules (
    place      BIGINT PRIMARY KEY CHECK (place = 1),
    rules      TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
-- The new values of settings whose change waits for a second person, sealed for the approval
-- and its hash. The row is deleted with the end of the proposal.
CREATE TABLE setting_changes (
    id     BIGINT PRIMARY KEY, -- the approval's id
    sealed TEXT   NOT NULL
);
