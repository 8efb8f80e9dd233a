DROP TABLE setting_changes;
DROP TABLE approval_rules;
