-- Every change of a field of a supplier, merchant and so on, however it was made. No value is a secret.
CREATE TABLE setting_history (
    id       BIGINT PRIMARY KEY,
    object   TEXT   NOT NULL, -- 'merchant m1'
    version  BIGINT NOT NULL, -- of the settings, once changed
    field    TEXT   NOT NULL, -- '' = the object was created
    old      TEXT   NOT NULL,
    new      TEXT   NOT NULL,
    actor    TEXT   NOT NULL,
    reason   TEXT   NOT NULL,
    approval TEXT   NOT NULL, -- its public id; '' = one person
    at       BIGINT NOT NULL
);
CREATE INDEX setting_history_object ON setting_history (object, id);
