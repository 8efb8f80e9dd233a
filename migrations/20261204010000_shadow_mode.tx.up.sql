-- Whether each node is in shadow mode; '' = its version does not say so.
ALTER TABLE nodes ADD COLUMN shadow TEXT NOT NULL DEFAULT '';
