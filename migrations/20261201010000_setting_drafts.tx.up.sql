-- What an operator has typed into the form of a supplier, merchant and so on, and not applied yet.
CREATE TABLE setting_drafts (
    operator_id BIGINT NOT NULL,
    object      TEXT   NOT NULL, -- 'merchant m1'
    sealed      TEXT   NOT NULL, -- may contain secrets
    version     BIGINT NOT NULL, -- of the settings that the operator saw
    at          BIGINT NOT NULL,
    PRIMARY KEY (operator_id, object)
);
