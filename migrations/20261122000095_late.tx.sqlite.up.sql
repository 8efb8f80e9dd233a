-- Orders that could not be closed are due again within a minute, and count as stuck until
-- then: this finds them among all that become due in that minute. They are few. Neither
-- column is one that a payment changes.
CREATE INDEX orders_late ON orders (next_at) WHERE close_tries > 0;
