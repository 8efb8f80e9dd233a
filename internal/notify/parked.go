package notify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/recipient"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// IsParked reports whether a recipient's notifications are parked: its breaker is not closed. A
// recipient that cannot be called at all needs no protection: its attempts fail without a call
// and end as exceptions, instead of staying parked while probes keep failing. A breaker that an
// operator opened always parks.
func IsParked(b *breaker.Cache, directory *merchant.Directory, to recipient.Recipient) bool {
	return parks(b.Of(to), directory, to)
}

func parks(r *breaker.Row, directory *merchant.Directory, to recipient.Recipient) bool {
	return r.Tripped() && (r.ByHand || canBeCalled(directory.ByID(to.ID)))
}

// Waits reports whether a due delivery waits for the breaker r. A delivery to an order's own
// URL waits even if nothing else for the recipient is parked.
func Waits(r *breaker.Row, directory *merchant.Directory, x *Delivery) bool {
	return r.Tripped() && (x.URL != "" || parks(r, directory, x.Recipient()))
}

// canBeCalled reports whether an attempt can end in a call.
func canBeCalled(m *merchant.Merchant) bool {
	if m == nil || m.Disabled {
		return false
	}
	inUse := func(e merchant.Endpoint) bool { return !e.Disabled }
	return len(m.Endpoints) == 0 || slices.ContainsFunc(m.Endpoints, inUse)
}

// ParkedIDs returns the sorted ids of the recipients whose notifications are parked.
func ParkedIDs(b *breaker.Cache, directory *merchant.Directory) []int64 {
	var ids []int64
	for id := range b.All() {
		if IsParked(b, directory, directory.RecipientOf(id)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Due says how much waits, and since when.
type Due struct {
	Count  int64 // at most maxCounted
	Oldest time.Duration
}

// maxCounted bounds a count: a figure on a page must not scan a backlog.
const maxCounted = 10_000

// countDue counts the rows of a query, whose column at is the time since which each waits.
func countDue(ctx context.Context, d *db.DB, now int64, rows *bun.SelectQuery) (Due, error) {
	var row struct{ Count, Oldest int64 }
	err := d.Read.NewRaw("SELECT count(*) AS count, coalesce(min(at), ?) AS oldest FROM (?) AS waiting", now,
		rows.Limit(maxCounted)).Scan(ctx, &row)
	if err != nil {
		return Due{}, fmt.Errorf("count waiting deliveries: %w", err)
	}
	return Due{Count: row.Count, Oldest: time.Duration(now-row.Oldest) * time.Microsecond}, nil
}

// Overdue counts deliveries that are due now, except those for parked recipients.
func Overdue(ctx context.Context, d *db.DB, parked []int64) (Due, error) {
	now := d.Now()
	q := d.Read.NewSelect().Table("deliveries").ColumnExpr("next_at AS at").Where("next_at <= ?", now)
	if len(parked) > 0 {
		q = q.Where("recipient_id NOT IN (?)", bun.List(parked))
	}
	return countDue(ctx, d, now, q)
}

// Held counts what waits for parked recipients.
func Held(ctx context.Context, d *db.DB, parked []int64) (Due, error) {
	if len(parked) == 0 {
		return Due{}, nil
	}
	return countDue(ctx, d, d.Now(), d.Read.NewSelect().Table("deliveries").ColumnExpr("created_at AS at").
		Where("recipient_id IN (?) AND next_at IS NOT NULL", bun.List(parked)))
}

// Parked counts what waits for a recipient, parked or not.
func Parked(ctx context.Context, d *db.DB, to recipient.Recipient) (Due, error) {
	return Held(ctx, d, []int64{to.ID})
}

// ParkedSums returns the notifications that wait for a recipient and their money by currency
// ("" = without money), for the first 10,000 deliveries. An event counts once, however many
// deliveries of it wait.
func ParkedSums(ctx context.Context, d *db.DB, to recipient.Recipient) (sums []report.Sum, more bool, err error) {
	err = d.Read.NewRaw("SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor FROM"+
		" (SELECT DISTINCT event_id, currency, amount FROM"+
		" (SELECT event_id, currency, amount FROM deliveries WHERE recipient_id = ? AND next_at IS NOT NULL LIMIT ?) AS w) AS e"+
		" GROUP BY currency ORDER BY currency", to.ID, maxCounted).Scan(ctx, &sums)
	if err != nil {
		return nil, false, fmt.Errorf("add up parked deliveries: %w", err)
	}
	var n int64
	for _, s := range sums {
		n += s.Orders
	}
	return sums, n == maxCounted, nil
}

// Waker nudges one parked notification of each recipient, through the delayed lane, for the
// time at which its breaker may be probed. Like every nudge it may be lost: the tick probes
// too.
type Waker struct {
	db       *db.DB
	breakers *breaker.Cache
	tasks    Tasks
	nudged   map[int64]int64 // generation by recipient
}

// NewWaker makes a Waker.
func NewWaker(d *db.DB, b *breaker.Cache, tasks Tasks) *Waker {
	return &Waker{db: d, breakers: b, tasks: tasks, nudged: map[int64]int64{}}
}

// Wake nudges for the probes of the next minute.
func (w *Waker) Wake(ctx context.Context) error {
	now, all := w.db.Now(), w.breakers.All()
	maps.DeleteFunc(w.nudged, func(id, generation int64) bool { return all[id] == nil || all[id].Generation != generation })
	for id, r := range all {
		if r.State != breaker.Open || r.ByHand || r.OpenUntil <= now || r.OpenUntil-now > retryAhead.Microseconds() ||
			w.nudged[id] == r.Generation {
			continue
		}
		w.nudged[id] = r.Generation
		var ids []int64
		err := w.db.Read.NewRaw("SELECT id FROM deliveries WHERE recipient_id = ? AND next_at <= ? ORDER BY "+probeOrder(r)+" LIMIT 1", id,
			r.OpenUntil).Scan(ctx, &ids)
		if err != nil {
			return fmt.Errorf("find a delivery for the probe: %w", err)
		}
		if len(ids) > 0 {
			// Best effort, like every nudge.
			_ = w.tasks.NotifyAt(ctx, queue.Delayed, time.UnixMicro(r.OpenUntil),
				[]queue.Nudge{{Delivery: ids[0], Recipient: id, At: r.OpenUntil}})
		}
	}
	return nil
}
