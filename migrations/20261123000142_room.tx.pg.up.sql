-- A payment makes an order's row a quarter longer. With room for that in its page, each new
-- version stays there, and no index gets a second entry.
ALTER TABLE orders SET (fillfactor = 78);
