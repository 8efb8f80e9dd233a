ALTER TABLE orders SET (fillfactor = 85);
