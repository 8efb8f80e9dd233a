-- Orders that could not be closed are due again within a minute and count as stuck until
-- then: this index finds these few among all orders that become due in that minute. A
-- payment changes neither column.
SET LOCAL statement_timeout = 0;
CREATE INDEX orders_late ON orders (next_at) WHERE close_tries > 0;
