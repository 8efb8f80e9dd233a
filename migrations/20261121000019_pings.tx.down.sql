DROP TABLE pings;
