-- A delivery is written twice within milliseconds, and is about twice as large the second
-- time: its page has room for that, so that no index changes.
ALTER TABLE deliveries SET (fillfactor = 50);
