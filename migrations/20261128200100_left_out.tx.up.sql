ALTER TABLE nodes ADD COLUMN left_out TEXT NOT NULL DEFAULT ''; -- settings that the node cannot use, as in "supplier s1, merchant m1"
