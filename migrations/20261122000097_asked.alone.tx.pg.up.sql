-- Orders that were queried three times: few among all that become due. A payment that is made
-- in time changes neither column.
SET LOCAL statement_timeout = 0;
CREATE INDEX orders_asked ON orders (next_at) WHERE query_tries > 2;
