-- Who has claimed an order to ask about it: at its next start a node releases what the
-- process before it had claimed, instead of waiting for the leases to end.
ALTER TABLE orders ADD COLUMN lease_owner BIGINT;
