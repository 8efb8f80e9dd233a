UPDATE orders SET next_at = NULL WHERE status IN ('paid', 'failed', 'closed') AND next_at IS NOT NULL;
DELETE FROM settings WHERE name = 'orders_due_from';
