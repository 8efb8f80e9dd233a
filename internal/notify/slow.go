package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
)

// maxSlow bounds what one node publishes of its slow merchants.
const maxSlow = 1000

// PublishSlow lets all nodes know which merchants this one notifies in its slow pool. It
// is for the tick, and writes only when that has changed.
func (d *Dispatcher) PublishSlow(ctx context.Context) error {
	now := d.slots.SlowLanes()
	metric.SlowMerchants.Set(float64(len(now)))
	now = now[:min(len(now), maxSlow)]
	if slices.Equal(now, d.publishedSlow) {
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
		return fmt.Errorf("publish slow merchants: %w", err)
	}
	d.publishedSlow = now
	return nil
}

// SlowMerchants are those that any running node notifies in its slow pool, by id.
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
