ALTER TABLE deliveries SET (fillfactor = 50);
