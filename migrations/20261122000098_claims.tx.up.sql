-- The process that has claimed an order for a query: at its next start, a node releases the
-- claims of its previous process instead of waiting for the leases to end.
ALTER TABLE orders ADD COLUMN lease_owner BIGINT;
