DROP TABLE setting_drafts;
