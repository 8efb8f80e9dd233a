package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/base/db"
)

// slowMost bounds what one node tells of its slow merchants.
const slowMost = 1000

// TellSlow tells all nodes which merchants this one tells in its slow pool. It is
// for the tick, and writes only when that has changed.
func (d *Dispatcher) TellSlow(ctx context.Context) error {
	now := d.slowHere()
	if slices.Equal(now, d.told) {
		return nil
	}
	text := ""
	if len(now) > 0 {
		list, err := json.Marshal(now)
		if err != nil {
			return fmt.Errorf("list slow merchants: %w", err)
		}
		text = string(list)
	}
	if _, err := d.o.DB.NewRaw("UPDATE nodes SET slow = ? WHERE boot = ?", text, d.o.DB.Boot()).Exec(ctx); err != nil {
		return fmt.Errorf("tell of slow merchants: %w", err)
	}
	d.told = now
	return nil
}

// slowHere are this node's slow merchants by id, as many as are told.
func (d *Dispatcher) slowHere() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []int64
	for id, l := range d.lanes {
		if l.slow {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), slowMost)]
}

// SlowMerchants are those that any living node tells in its slow pool, by id.
func SlowMerchants(ctx context.Context, d *db.DB) ([]int64, error) {
	var lists []string
	err := d.Read.NewRaw("SELECT slow FROM nodes WHERE slow <> '' AND seen_at > ?", d.Now()-db.NodeGone.Microseconds()).Scan(ctx, &lists)
	if err != nil {
		return nil, fmt.Errorf("read slow merchants: %w", err)
	}
	var all []int64
	for _, list := range lists {
		var ids []int64
		if err := json.Unmarshal([]byte(list), &ids); err != nil {
			return nil, fmt.Errorf("slow merchants of a node: %w", err)
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
