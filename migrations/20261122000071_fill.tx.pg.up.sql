-- A delivery is written twice within milliseconds, and the second time it is about twice as
-- large: there is room for that in its page, so that no index is touched.
ALTER TABLE deliveries SET (fillfactor = 50);
