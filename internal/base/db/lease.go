package db

import (
	"context"
	"fmt"
	"time"
)

// Lease reports whether this boot may do the named work until ttl has passed. One node at a
// time gets true and renews its lease with every call; the lease of a node that has ended
// expires. A lease saves duplicate work but is not a lock: the work must stay correct if two
// nodes do it.
func (d *DB) Lease(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	now := d.Now()
	res, err := d.NewRaw("INSERT INTO leases (name, owner, until) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"+
		" SET owner = EXCLUDED.owner, until = EXCLUDED.until WHERE leases.owner = EXCLUDED.owner OR leases.until < ?",
		name, d.Boot(), now+ttl.Microseconds(), now).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("take the lease %s: %w", name, err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Yield ends this boot's lease of the named work, so that the next node need not wait for its
// end. Without it, or if it fails, the lease expires.
func (d *DB) Yield(ctx context.Context, name string) error {
	_, err := d.NewRaw("UPDATE leases SET until = 0 WHERE name = ? AND owner = ?", name, d.Boot()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("yield the lease %s: %w", name, err)
	}
	return nil
}
