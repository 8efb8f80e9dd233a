package db

import (
	"context"
	"fmt"
	"time"
)

// Lease says whether this boot may do the named work until ttl has passed. One
// node at a time gets yes; whoever holds the lease renews it by asking again, and
// a dead node's lease runs out by itself. It keeps work from being done by many
// at once and is no lock: work must stay right when two do it.
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
