DROP TABLE sweeps;
DELETE FROM settings WHERE name = 'sweep_night';
