package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"

	"github.com/uptrace/bun"
)

// claimed is a delivery that this node may send now, with its frozen body.
type claimed struct {
	ID         int64
	EventID    int64
	MerchantID int64
	SubjectID  int64
	EventType  string
	Channel    string
	URL        string
	Endpoint   string
	House      bool
	Shared     bool
	Counted    bool
	Attempts   int64
	// ScheduleFrom is how many attempts the schedule does not count.
	ScheduleFrom int64
	CreatedAt    int64
	Currency     string
	Amount       int64
	Body         string
	Trace        string // names the span that the attempt goes on from
	Lease        int64  // Unix µs: from then on others may claim it
}

// publicID is the id that the merchant sees.
func (c *claimed) publicID() string { return IDOf(c.EventID, c.Body) }

// claimedColumns are what a claim returns.
const claimedColumns = " RETURNING id, event_id, merchant_id, subject_id, event_type, channel, url, endpoint, house, shared, counted, attempts, schedule_from," +
	" created_at, currency, amount, trace, next_at AS lease, coalesce((SELECT body FROM events WHERE events.id = deliveries.event_id), '') AS body"

// claimUpdate finds its rows by id alone. Where the planner sees that only what is
// due can match, it also walks all that is due, as it believes that this is little.
var claimUpdate = "UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?" +
	" WHERE id IN (?) AND coalesce(next_at, 9223372036854775807) <= ? AND " + claimable + " AND "

// claimTimeout bounds one claim or pull.
const claimTimeout = 5 * time.Second

// claim takes the rows that are really due: it counts the attempt and writes the
// lease before any call goes out, so that a crash costs one attempt and never a
// notification. Rows of an attempt that never ended (its lease is over) are due
// again. Who else claims at the same moment gets other rows or none. What it returns
// beside an error is claimed nevertheless.
func (d *Dispatcher) claim(batch []*ticket) ([]*load, error) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	digests, gathered, err := d.digests(ctx, batch)
	if err != nil {
		return nil, err
	}
	single := slices.DeleteFunc(slices.Clone(batch), func(t *ticket) bool { return gathered[t] })
	all, err := d.claimEach(ctx, single)
	if err != nil {
		return nil, err
	}
	for _, g := range digests {
		l, err := d.claimDigest(ctx, g)
		if err != nil {
			return all, err
		}
		if l != nil {
			all = append(all, l)
		}
	}
	return all, nil
}

// claimEach claims what goes alone.
func (d *Dispatcher) claimEach(ctx context.Context, batch []*ticket) ([]*load, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	tickets := make(map[int64]*ticket, len(batch))
	ids, merchants := make([]int64, len(batch)), make([]int64, len(batch))
	for i, t := range batch {
		tickets[t.id], ids[i], merchants[i] = t, t.id, t.lane.merchant
	}
	now := d.o.DB.Now()
	lease := now + (d.o.Timeout + leaseMargin).Microseconds()
	var rows []claimed
	args := d.claimArgs(lease, ids, d.linked(merchants), now)
	err := d.o.DB.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		return q.Prepared(ctx, &rows, d.claimText(), args...)
	})
	if err != nil {
		return nil, err
	}
	all := make([]*load, len(rows))
	for i, r := range rows {
		all[i] = &load{ticket: tickets[r.ID], claimed: r}
	}
	return all, nil
}

func (d *Dispatcher) claimText() string { return claimUpdate + d.within() + claimedColumns }

func (d *Dispatcher) claimArgs(lease int64, ids, linked []int64, now int64) []any {
	return append([]any{Sending, d.o.DB.Boot(), lease, ids, now}, d.withinArgs(linked, now)...)
}

// pull fetches a merchant's next due rows when its line has run out and more may
// be waiting in SQL. Called with d.mu held; the query runs beside.
func (d *Dispatcher) pull(l *lane) {
	if !l.more || l.pulling || d.closing || len(l.waiting) > 0 {
		return
	}
	l.more, l.pulling = false, true
	d.calls.Go(func() {
		nudges, err := d.due(l.merchant)
		if err != nil {
			d.o.Log.Error("pull due deliveries", "error", db.Explain(err))
		}
		d.mu.Lock()
		l.pulling = false
		again := l.more // asked for meanwhile, about rows that this query may not have seen
		// A full page means that there may be more behind it.
		l.more = again || len(nudges) == laneWaiting
		d.mu.Unlock()
		d.Offer(nudges)
		if again {
			d.mu.Lock()
			d.pull(l)
			d.mu.Unlock()
		}
	})
}

// lookAhead is how far before its moment a row is fetched, so that a tick of one
// second does not make it late.
const lookAhead = 1200 * time.Millisecond

func (d *Dispatcher) due(merchantID int64) ([]queue.Nudge, error) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	now := d.o.DB.Now()
	here := bun.SafeQuery(d.within(), d.withinArgs(bun.List(d.linked([]int64{merchantID})), now)...)
	for _, k := range d.asideOf(merchantID) {
		here = bun.SafeQuery("? AND NOT ?", here, k.where())
	}
	read := func(order string, most int) (rows []dueRow, err error) {
		err = d.o.DB.Read.NewRaw("SELECT id, next_at FROM deliveries WHERE merchant_id = ? AND next_at <= ? AND ? ORDER BY "+order+" LIMIT ?",
			merchantID, now+lookAhead.Microseconds(), here, most).Scan(ctx, &rows)
		return rows, err
	}
	r, g := d.o.Breakers.Of(merchantID), d.gate(merchantID)
	if g.Delivery != 0 {
		var rows []dueRow
		err := d.o.DB.Read.NewRaw("SELECT id, next_at FROM deliveries WHERE id = ? AND next_at <= ? AND ?", g.Delivery, now+lookAhead.Microseconds(), here).Scan(ctx, &rows)
		return nudgesOf(merchantID, rows), err
	}
	if r == nil || g.Flow && g.Release.PerSecond == 0 {
		rows, err := read(oldestFirst, laneWaiting)
		return nudgesOf(merchantID, rows), err
	}
	oldest, err := read(oldestFirst, laneWaiting/2)
	if err != nil {
		return nil, err
	}
	newest, err := read(newestFirst, laneWaiting/2)
	if err != nil {
		return nil, err
	}
	if sideOf(r) == newestFirst {
		oldest, newest = newest, oldest
	}
	return nudgesOf(merchantID, inTurns(oldest, newest)), nil
}

type dueRow struct{ ID, NextAt int64 }

func nudgesOf(merchantID int64, rows []dueRow) []queue.Nudge {
	nudges := make([]queue.Nudge, len(rows))
	for i, r := range rows {
		nudges[i] = queue.Nudge{Delivery: r.ID, Merchant: merchantID, At: r.NextAt}
	}
	return nudges
}

// A merchant that has been out of reach is tried from both sides of what waits for
// it. Orders may name addresses of their own: where the oldest all go to one that is
// dead, each of them would have to fail as a probe before one that can be told.
const (
	oldestFirst = "next_at"
	newestFirst = "next_at DESC"
)

// sideOf is where the next probe is taken from: each breaker takes turns, as every
// probe that fails changes it twice.
func sideOf(r *breaker.Row) string {
	if r.Generation/2%2 == 1 {
		return newestFirst
	}
	return oldestFirst
}

// inTurns takes from a and b in turns, and each row once.
func inTurns(a, b []dueRow) []dueRow {
	all := make([]dueRow, 0, len(a)+len(b))
	seen := map[int64]bool{}
	for i := range max(len(a), len(b)) {
		for _, side := range [][]dueRow{a, b} {
			if i < len(side) && !seen[side[i].ID] {
				seen[side[i].ID] = true
				all = append(all, side[i])
			}
		}
	}
	return all
}

// DueMerchants lists merchants that have a row due about now, after the given
// one, at most limit. Each costs one index probe, however long its backlog is.
func DueMerchants(ctx context.Context, d *db.DB, after int64, limit int) (merchants []int64, last int64, err error) {
	now := d.Now() + lookAhead.Microseconds()
	for range limit {
		var row []struct{ MerchantID, NextAt int64 }
		err := d.Read.NewRaw("SELECT merchant_id, next_at FROM deliveries WHERE next_at IS NOT NULL AND merchant_id > ?"+
			" ORDER BY merchant_id, next_at LIMIT 1", after).Scan(ctx, &row)
		if err != nil {
			return nil, 0, fmt.Errorf("find due merchants: %w", err)
		}
		if len(row) == 0 {
			return merchants, 0, nil // once round
		}
		after = row[0].MerchantID
		if row[0].NextAt <= now {
			merchants = append(merchants, after)
		}
	}
	return merchants, after, nil
}

// ReleaseLeases hands back what the boots had claimed: they are dead, and their
// merchants need not wait for the leases to run out.
func ReleaseLeases(ctx context.Context, d *db.DB, boots []int64) (int64, error) {
	if len(boots) == 0 {
		return 0, nil
	}
	res, err := d.NewRaw("UPDATE deliveries SET status = ?, next_at = ?, lease_owner = 0 WHERE next_at IS NOT NULL AND status = ? AND lease_owner IN (?)",
		RetryWait, d.Now(), Sending, bun.List(boots)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("release leases of earlier runs: %w", err)
	}
	return res.RowsAffected()
}

// Due is how much waits beyond its time.
type Due struct {
	Count  int64 // at most overdueMost
	Oldest time.Duration
}

// overdueMost bounds the count: a figure on a page must not scan a backlog.
const overdueMost = 10_000

// Overdue counts deliveries that are due now; what waits for the merchants that
// are parked is not late.
func Overdue(ctx context.Context, d *db.DB, parked []int64) (Due, error) {
	now := d.Now()
	q := d.Read.NewSelect().Table("deliveries").Column("next_at").Where("next_at <= ?", now).Limit(overdueMost)
	if len(parked) > 0 {
		q = q.Where("merchant_id NOT IN (?)", bun.List(parked))
	}
	var row struct{ Count, Oldest int64 }
	err := d.Read.NewRaw("SELECT count(*) AS count, coalesce(min(next_at), ?) AS oldest FROM (?) AS due", now, q).Scan(ctx, &row)
	if err != nil {
		return Due{}, fmt.Errorf("count overdue deliveries: %w", err)
	}
	return Due{Count: row.Count, Oldest: time.Duration(now-row.Oldest) * time.Microsecond}, nil
}
