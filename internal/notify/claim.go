package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/base/work"
	"backstop/internal/breaker"

	"github.com/uptrace/bun"
)

// claimed is a delivery that this node may send now, with its event's body.
type claimed struct {
	Delivery `bun:",extend"`

	Lease int64 // Unix µs; from then on other nodes may claim it
}

// claimedColumns are what a claim returns.
const claimedColumns = " RETURNING id, event_id, recipient_id, subject_id, event_type, channel, url, endpoint, to_subscriber, shared, counted, attempts, schedule_from," +
	" created_at, currency, amount, trace, last_class, next_at AS lease," +
	" coalesce(body, (SELECT e.body FROM events AS e WHERE e.id = deliveries.event_id)," +
	" (SELECT e.body FROM delivery_events AS e WHERE e.id = deliveries.event_id), '') AS body"

// claimUpdate finds rows by id alone: a planner that sees that only due rows can match also
// scans all due rows, expecting few.
var claimUpdate = "UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?" +
	" WHERE id IN (?) AND coalesce(next_at, 9223372036854775807) <= ? AND " + claimable + " AND "

// claimTimeout bounds a small query outside the main work.
const claimTimeout = 5 * time.Second

// source provides the deliveries as work; a lane is a recipient's id.
type source struct {
	o      *Options
	links  links
	gates  *gates
	faults *faults
}

// load is what one attempt sends: a delivery, and others claimed with it for the same message.
type load struct {
	claimed
	more []claimed
}

func (l *load) all() []claimed { return append([]claimed{l.claimed}, l.more...) }

// Claim counts the attempt and writes the lease before any call goes out. A row whose lease has
// ended is due again. Nodes that claim at the same time get different rows.
func (s *source) Claim(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*load], error) {
	if len(slots) == 1 && slots[0].Probe { // a probe comes alone
		if allowed, err := s.gates.probe(ctx, &slots[0]); err != nil || !allowed {
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

// claimEach claims deliveries that are sent alone.
func (s *source) claimEach(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*load], error) {
	if len(slots) == 0 {
		return nil, nil
	}
	of := make(map[int64]work.Slot, len(slots))
	ids, lanes := make([]int64, len(slots)), make([]int64, len(slots))
	for i, x := range slots {
		of[x.ID], ids[i], lanes[i] = x, x.ID, x.Lane
	}
	var got []claimed
	args := s.claimArgs(l, ids, s.links.of(lanes), s.o.DB.Now())
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

// Release returns a claim whose attempt was not made, or was cancelled by our shutdown and must
// not count.
func (s *source) Release(ctx context.Context, l *load, at int64) error {
	return release(ctx, s.o.DB, "", "", at, l.all()...)
}

// maxFault bounds the text of a fault.
const maxFault = 300

// release makes claims due again at the given time, uncounted, with the reason why they wait. An
// empty cause keeps the stored one, and what has not been tried yet is queued as before.
func release(ctx context.Context, d *db.DB, cause Class, why string, at int64, all ...claimed) error {
	set := bun.SafeQuery("")
	if cause != "" {
		set = bun.SafeQuery(", last_class = ?, last_error = ?", cause, textlimit.Clip(textlimit.Storable(why), maxFault))
	}
	err := d.SharedTx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, c := range all {
			status := RetryWait
			if cause == "" && c.Attempts == 1 {
				status = Queued
			}
			_, err := tx.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts - 1, next_at = ?, lease_owner = 0?"+
				" WHERE id = ? AND attempts = ? AND lease_owner = ? AND status = ?",
				status, at, set, c.ID, c.Attempts, d.Boot(), Sending).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("release deliveries: %w", err)
	}
	return nil
}

// Due reads a recipient's due rows. While the breaker releases slowly or probes, it takes the
// oldest and the newest alternately.
func (s *source) Due(ctx context.Context, lane, now int64, n int) ([]work.Job, error) {
	to := s.o.Directory().RecipientOf(lane)
	here := bun.SafeQuery(s.links.within(), s.links.withinArgs(bun.List(s.links.of([]int64{lane})), now)...)
	for _, k := range s.faults.skippedOf(lane) {
		here = bun.SafeQuery("? AND NOT ?", here, k.where())
	}
	read := func(column string, id int64, order string, n int) (jobs []work.Job, err error) {
		err = s.o.DB.Read.NewRaw("SELECT id, recipient_id AS lane, next_at AS at FROM deliveries WHERE "+column+
			" = ? AND next_at <= ? AND ? ORDER BY "+order+" LIMIT ?",
			id, now+work.LookAhead.Microseconds(), here, n).Scan(ctx, &jobs)
		return jobs, err
	}
	r, g := s.o.Breakers.Of(to), s.gates.breaker(to)
	if g.Delivery != 0 {
		return read("id", g.Delivery, oldestFirst, 1)
	}
	if r == nil || g.Flow && g.PerSecond == 0 {
		return read("recipient_id", lane, oldestFirst, n)
	}
	order := probeOrder(r)
	first, err := read("recipient_id", lane, order, n/2)
	if err != nil {
		return nil, err
	}
	second, err := read("recipient_id", lane, otherEnd[order], n/2)
	return inTurns(first, second), err
}

// While a breaker is not closed, notifications are taken from both ends of the backlog. Orders
// may have their own URLs: if the oldest are all for a dead URL, each would have to fail as a
// probe before one that can be delivered.
const (
	oldestFirst = "next_at"
	newestFirst = "next_at DESC"
)

var otherEnd = map[string]string{oldestFirst: newestFirst, newestFirst: oldestFirst}

// probeOrder returns the end from which the next probe is taken: the oldest, and after each
// failed probe the other end.
func probeOrder(r *breaker.Row) string {
	if r.FailedProbes%2 == 1 {
		return newestFirst
	}
	return oldestFirst
}

// inTurns takes rows from a and b alternately, each row once.
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

// DueRecipients lists at most limit recipients with ids after the given one that have a row due
// about now.
func DueRecipients(ctx context.Context, d *db.DB, after int64, limit int) (ids []int64, last int64, err error) {
	return work.DueLanes(ctx, d, "deliveries", "recipient_id", after, limit)
}

// leased are the conditions, each with an index, of which every claim fulfils one.
var leased = []string{"next_at IS NOT NULL", "id > (" + checkedTo + ") AND " + unindexed}

// ReleaseLeases releases the claims of boots that have ended, before their leases end.
func ReleaseLeases(ctx context.Context, d *db.DB, boots []int64) (int64, error) {
	if len(boots) == 0 {
		return 0, nil
	}
	var released int64
	for _, which := range leased {
		res, err := d.NewRaw("UPDATE deliveries SET status = ?, next_at = ?, lease_owner = 0 WHERE "+which+
			" AND status = ? AND lease_owner IN (?)",
			RetryWait, d.Now(), Sending, bun.List(boots)).Exec(ctx)
		if err != nil {
			return released, fmt.Errorf("release leases of earlier runs: %w", err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return released, err
		}
		released += n
	}
	return released, nil
}
