DROP TABLE open_pings;
