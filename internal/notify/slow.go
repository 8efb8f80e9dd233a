package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
)

// maxPublished bounds a list published by one node.
const maxPublished = 1000

// published is a list in this node's row of nodes, as last written.
type published string

// publish writes at most maxPublished entries of a list into a column, if it has changed.
func publish[T any](ctx context.Context, d *db.DB, last *published, column string, list []T) error {
	text := ""
	if len(list) > 0 {
		data, err := json.Marshal(list[:min(len(list), maxPublished)])
		if err != nil {
			return fmt.Errorf("write %s: %w", column, err)
		}
		text = string(data)
	}
	if text == string(*last) {
		return nil
	}
	if _, err := d.NewRaw("UPDATE nodes SET "+column+" = ? WHERE boot = ?", text, d.Boot()).Exec(ctx); err != nil {
		return fmt.Errorf("publish %s: %w", column, err)
	}
	*last = published(text)
	return nil
}

// readPublished reads the lists that running nodes have published in a column.
func readPublished[T any](ctx context.Context, d *db.DB, column string) (all []T, err error) {
	var lists []string
	err = d.Read.NewRaw("SELECT "+column+" FROM nodes WHERE "+column+" <> '' AND seen_at > ?", d.Now()-db.NodeGone.Microseconds()).Scan(ctx,
		&lists)
	if err != nil {
		return nil, fmt.Errorf("read %s of nodes: %w", column, err)
	}
	for _, list := range lists {
		var of []T
		if err := json.Unmarshal([]byte(list), &of); err != nil {
			return nil, fmt.Errorf("read %s of a node: %w", column, err)
		}
		all = append(all, of...)
	}
	return all, nil
}

// PublishSlow publishes which recipients this node notifies in its slow pool. It is called by
// the tick, and writes only changes.
func (d *Dispatcher) PublishSlow(ctx context.Context) error {
	slow := d.slots.SlowLanes()
	if !d.o.Unmetered {
		metric.SlowMerchants.Set(float64(len(slow)))
	}
	return publish(ctx, d.o.DB, &d.slow, "slow", slow)
}

// SlowRecipients returns the ids of the recipients that any running node notifies in its slow
// pool.
func SlowRecipients(ctx context.Context, d *db.DB) ([]int64, error) {
	ids, err := readPublished[int64](ctx, d, "slow")
	slices.Sort(ids)
	return slices.Compact(ids), err
}
