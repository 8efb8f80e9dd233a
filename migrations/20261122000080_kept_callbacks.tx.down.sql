DROP TABLE exception_callbacks;
DELETE FROM settings WHERE name = 'callbacks_looked_at';
