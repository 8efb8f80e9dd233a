package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/base/work"
	"backstop/internal/breaker"
	"backstop/internal/recipient"

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

func (c *claimed) recipient() recipient.Recipient { return recipient.Of(c.MerchantID, c.House) }

// publicID is the id that the merchant sees.
func (c *claimed) publicID() string { return IDOf(c.EventID, c.Body) }

// claimedColumns are what a claim returns.
const claimedColumns = " RETURNING id, event_id, merchant_id, subject_id, event_type, channel, url, endpoint, house, shared, counted, attempts, schedule_from," +
	" created_at, currency, amount, trace, next_at AS lease, coalesce((SELECT body FROM events WHERE events.id = deliveries.event_id), '') AS body"

// claimUpdate finds its rows by id alone. Where the planner sees that only what is
// due can match, it also walks all that is due, as it believes that this is little.
var claimUpdate = "UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?" +
	" WHERE id IN (?) AND coalesce(next_at, 9223372036854775807) <= ? AND " + claimable + " AND "

// claimTimeout bounds one small query beside the work.
const claimTimeout = 5 * time.Second

// source is the deliveries as work: a lane is a merchant.
type source struct {
	o      *Options
	links  links
	gates  *gates
	faults *faults
}

// load is what one attempt sends: a delivery, and those claimed with it that go in
// the same message.
type load struct {
	claimed
	more []claimed
}

func (l *load) all() []claimed { return append([]claimed{l.claimed}, l.more...) }

// Claim counts the attempt and writes the lease before any call goes out. Rows of an
// attempt that never ended (its lease is over) are due again. Who else claims at the
// same moment gets other rows or none.
func (s *source) Claim(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*load], error) {
	if len(slots) == 1 && slots[0].Probe { // a probe comes alone
		if may, err := s.gates.probe(ctx, &slots[0]); err != nil || !may {
			return nil, err
		}
	}
	digests, gathered, err := s.digests(ctx, slots)
	if err != nil {
		return nil, err
	}
	single := slices.DeleteFunc(slices.Clone(slots), func(x work.Slot) bool { return gathered[x.ID] })
	all, err := s.claimEach(ctx, single, l)
	if err != nil {
		return nil, err
	}
	for _, g := range digests {
		x, err := s.claimDigest(ctx, g, l)
		if err != nil {
			return all, err
		}
		if x != nil {
			all = append(all, work.Claimed[*load]{Slot: g.slot, Row: x})
		}
	}
	return all, nil
}

// claimEach claims what goes alone.
func (s *source) claimEach(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*load], error) {
	if len(slots) == 0 {
		return nil, nil
	}
	of := make(map[int64]work.Slot, len(slots))
	ids, merchants := make([]int64, len(slots)), make([]int64, len(slots))
	for i, x := range slots {
		of[x.ID], ids[i], merchants[i] = x, x.ID, x.Lane
	}
	var got []claimed
	args := s.claimArgs(l, ids, s.links.of(merchants), s.o.DB.Now())
	err := s.o.DB.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		return q.Prepared(ctx, &got, s.claimText(), args...)
	})
	if err != nil {
		return nil, err
	}
	all := make([]work.Claimed[*load], len(got))
	for i, c := range got {
		all[i] = work.Claimed[*load]{Slot: of[c.ID], Row: &load{claimed: c}}
	}
	return all, nil
}

func (s *source) claimText() string { return claimUpdate + s.links.within() + claimedColumns }

func (s *source) claimArgs(l work.Lease, ids, linked []int64, now int64) []any {
	return append([]any{Sending, l.Owner, l.Until, ids, now}, s.links.withinArgs(linked, now)...)
}

// Release returns a claim whose attempt was not made, or that we cut off ourselves, so
// that shutting down costs the merchant's schedule nothing.
func (s *source) Release(ctx context.Context, l *load, at int64) error {
	return release(ctx, s.o.DB, "", "", at, l.all()...)
}

// maxFault bounds the words for a fault.
const maxFault = 300

// release makes claims due again at the moment at, uncounted, with why they wait; ""
// keeps what was there.
func release(ctx context.Context, d *db.DB, cause Class, why string, at int64, all ...claimed) error {
	set := bun.SafeQuery("")
	if cause != "" {
		set = bun.SafeQuery(", last_class = ?, last_error = ?", cause, textlimit.Clip(textlimit.Storable(why), maxFault))
	}
	var failed error
	for _, c := range all {
		_, err := d.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts - 1, next_at = ?, lease_owner = 0?"+
			" WHERE id = ? AND attempts = ? AND lease_owner = ? AND status = ?",
			RetryWait, at, set, c.ID, c.Attempts, d.Boot(), Sending).Exec(ctx)
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("release deliveries: %w", failed)
	}
	return nil
}

// lookAhead is how far before its moment a row is fetched, so that a tick of one
// second does not make it late.
const lookAhead = 1200 * time.Millisecond

// Due reads a merchant's due rows. Of what a breaker lets go slowly, or lets probe, it
// takes the oldest and the newest in turns.
func (s *source) Due(ctx context.Context, merchantID, now int64, n int) ([]work.Job, error) {
	here := bun.SafeQuery(s.links.within(), s.links.withinArgs(bun.List(s.links.of([]int64{merchantID})), now)...)
	for _, k := range s.faults.asideOf(merchantID) {
		here = bun.SafeQuery("? AND NOT ?", here, k.where())
	}
	read := func(whose string, id int64, order string, n int) (jobs []work.Job, err error) {
		err = s.o.DB.Read.NewRaw("SELECT id, merchant_id AS lane, next_at AS at FROM deliveries WHERE "+whose+" = ? AND next_at <= ? AND ? ORDER BY "+order+" LIMIT ?",
			id, now+lookAhead.Microseconds(), here, n).Scan(ctx, &jobs)
		return jobs, err
	}
	r, g := s.o.Breakers.Of(merchantID), s.gates.breaker(merchantID)
	if g.Delivery != 0 {
		return read("id", g.Delivery, oldestFirst, 1)
	}
	if r == nil || g.Flow && g.Release.PerSecond == 0 {
		return read("merchant_id", merchantID, oldestFirst, n)
	}
	oldest, err := read("merchant_id", merchantID, oldestFirst, n/2)
	if err != nil {
		return nil, err
	}
	newest, err := read("merchant_id", merchantID, newestFirst, n/2)
	if err != nil {
		return nil, err
	}
	if sideOf(r) == newestFirst {
		oldest, newest = newest, oldest
	}
	return inTurns(oldest, newest), nil
}

// A merchant that has been out of reach is tried from both sides of what waits for
// it. Orders may name addresses of their own: where the oldest all go to one that is
// dead, each of them would have to fail as a probe before one that can be notified.
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
func inTurns(a, b []work.Job) []work.Job {
	all := make([]work.Job, 0, len(a)+len(b))
	seen := map[int64]bool{}
	for i := range max(len(a), len(b)) {
		for _, side := range [][]work.Job{a, b} {
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
	Count  int64 // at most maxOverdue
	Oldest time.Duration
}

// maxOverdue bounds the count: a figure on a page must not scan a backlog.
const maxOverdue = 10_000

// Overdue counts deliveries that are due now; what waits for the merchants that
// are parked is not late.
func Overdue(ctx context.Context, d *db.DB, parked []int64) (Due, error) {
	now := d.Now()
	q := d.Read.NewSelect().Table("deliveries").Column("next_at").Where("next_at <= ?", now).Limit(maxOverdue)
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
