DROP TABLE freezes;
