-- A delivery is written twice, the second time two thirds larger: at 40 % its page has room for
-- all of its rows' second versions, at 50 % for two thirds of them.
ALTER TABLE deliveries SET (fillfactor = 40);
