DROP TABLE endpoint_waits;
