DROP TABLE setting_history;
