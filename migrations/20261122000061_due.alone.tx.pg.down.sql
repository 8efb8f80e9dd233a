SET LOCAL statement_timeout = 0;
UPDATE orders SET next_at = NULL WHERE status IN ('paid', 'failed', 'closed') AND next_at IS NOT NULL;
DELETE FROM settings WHERE name = 'orders_due_from';
ALTER TABLE orders RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
