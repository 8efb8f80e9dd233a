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
