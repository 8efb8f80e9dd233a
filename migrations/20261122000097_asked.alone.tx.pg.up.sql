-- Orders that were asked about three times: few, among all that become due. Neither column is
-- one that changes with a payment that is made in time.
SET LOCAL statement_timeout = 0;
CREATE INDEX orders_asked ON orders (next_at) WHERE query_tries > 2;
