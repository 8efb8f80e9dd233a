package db

import (
	"context"
	"fmt"
	"time"
)

// Lease reports whether this boot may do the named work until ttl has passed. One node at
// a time gets true, and renews its lease with every call; a lease of a node that ended
// expires. It keeps many nodes from doing the work at once and is no lock: the work must
// stay correct when two do it.
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
