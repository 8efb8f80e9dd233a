// Package orderquery brings open orders to an end by querying their suppliers: it queries, closes
// expired orders, and passes the answers to payment.Confirm. An order waits in its own row;
// next_at is when it is queried next.
package orderquery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/work"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

const (
	// lease is how long a claim holds. A query and a close, including their waits for the
	// supplier's rate limit, end within it.
	lease = 30 * time.Second
	// runTime bounds one run, so that its result is written within the lease.
	runTime = 20 * time.Second
	// size is how many orders this node works on at a time, over all suppliers.
	size = 128
	// gather is how long a claim and a result wait for those of other orders. Nobody waits for
	// them, and callbacks need the commits more.
	gather = 25 * time.Millisecond
	// readMargin covers orders that are committed after the time at which they are due.
	readMargin = 2 * time.Second
)

// Options of a Worker.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Payments *payment.Processor
	Calls    *suppliercall.Caller
	Steps    payment.Steps
	Grace    time.Duration // wait after the timeout of an order that cannot be closed at its supplier
	InFlight int           // calls per supplier on this node
	Log      *slog.Logger
	// Stuck adds the writes for an order that has run out of steps for the first time.
	Stuck func(w *db.Writes, o *order.Order, supplierID int64)
	// QueryOnly is for a process without workers, which only serves queries by operators.
	QueryOnly bool
}

// Worker queries the orders that are due. A lane is a supplier's id.
type Worker struct {
	o     Options
	slots *work.Slots
	work  *work.Worker[*job, *result] // nil = AskOnly

	mu    sync.Mutex
	lanes map[int64]lane
}

// lane is what this node knows about one supplier's due rows.
type lane struct {
	from int64 // no row outside memory is due before this; 0 = unknown
	more bool  // there may be due rows outside memory
}

// New starts a Worker.
func New(o Options) *Worker {
	a := &Worker{o: o, lanes: map[int64]lane{}}
	if o.QueryOnly {
		return a
	}
	a.slots = work.NewSlots(work.SlotOptions{Size: size, Gate: a.gate, Nodes: o.DB.Senders})
	a.work = work.NewWorker(work.Options[*job, *result]{
		DB: o.DB, Slots: a.slots, Source: a, Lease: lease, Gather: gather, Run: a.run, Commit: a.commit, Written: a.written,
		Observe: metric.ObserveBatch("advance"), Log: o.Log,
	})
	return a
}

// Close stops the Worker and waits for running calls until ctx ends.
func (a *Worker) Close(ctx context.Context) {
	if a.work != nil {
		a.work.Close(ctx)
	}
}

// gate returns the limits of a supplier's lane. While the supplier is unavailable its orders
// stay in their rows, and no attempt is counted.
func (a *Worker) gate(supplierID int64) work.Gate {
	s, ok := a.o.Settings.Current().Suppliers.ByID(supplierID)
	if !ok || s.Can().Querier == nil {
		return work.Gate{}
	}
	b := a.o.Calls.Gate(supplierID)
	// Three times as many as may be in flight, because the next ones are claimed meanwhile; but
	// no more than the rate lets through before their lease ends.
	most := min(3*a.o.InFlight, 1+s.QueryRate*int(runTime/time.Second)/2/a.o.DB.Senders())
	return work.Gate{Open: b.Flow, Lease: b.Due, NodeRate: b.PerSecond, Max: most, Epoch: b.Generation}
}

// Offer takes orders that are due. It never blocks; what does not fit stays in its row.
func (a *Worker) Offer(due []payment.Moment) {
	if a.work == nil {
		return
	}
	jobs := make([]work.Job, len(due))
	a.mu.Lock()
	for i, m := range due {
		jobs[i] = work.Job{ID: m.ID, Lane: m.Supplier, At: m.NextAt}
		a.behind(m.Supplier, m.NextAt)
	}
	a.mu.Unlock()
	a.work.Offer(jobs...)
}

// behind notes that rows of a lane may be due from a given time on. The caller holds a.mu.
func (a *Worker) behind(supplierID, at int64) {
	l := a.lanes[supplierID]
	if l.from != 0 {
		l.from = min(l.from, at)
	}
	l.more = true
	a.lanes[supplierID] = l
}

// OfferIDs is Offer for the order ids of a task.
func (a *Worker) OfferIDs(nudges []queue.Nudge) {
	due := make([]payment.Moment, len(nudges))
	for i, n := range nudges {
		due[i] = payment.Moment{ID: n.Delivery, Supplier: n.Recipient, NextAt: n.At}
		if n.At == 0 {
			due[i].NextAt = a.o.DB.Now()
		}
	}
	a.Offer(due)
}

// Tick starts reading the due rows of suppliers that can be queried again.
func (a *Worker) Tick(context.Context) error {
	var pull []int64
	a.mu.Lock()
	for id, l := range a.lanes {
		switch g := a.gate(id); {
		case !g.Open && !g.Lease:
			l.from, l.more = 0, true // the lane was dropped from memory
			a.lanes[id] = l
		case l.more:
			pull = append(pull, id)
		}
	}
	a.mu.Unlock()
	a.work.Pull(pull...)
	return nil
}

// Due reads the due orders of a supplier.
func (a *Worker) Due(ctx context.Context, supplierID, now int64, n int) ([]work.Job, error) {
	a.mu.Lock()
	l := a.lanes[supplierID]
	from := l.from
	l.more = false // Offer may set it meanwhile
	a.lanes[supplierID] = l
	a.mu.Unlock()
	jobs, err := a.due(ctx, supplierID, from, now, n)
	a.mu.Lock()
	defer a.mu.Unlock()
	l = a.lanes[supplierID]
	switch {
	case err != nil:
		l.more = true
	case len(jobs) == n:
		l.from, l.more = jobs[0].At, true
	case !l.more:
		l.from = now - readMargin.Microseconds()
	}
	a.lanes[supplierID] = l
	return jobs, err
}

func (a *Worker) due(ctx context.Context, supplierID, from, now int64, n int) (jobs []work.Job, err error) {
	if from == 0 {
		if from, err = order.Watermark(ctx, a.o.DB.Read); err != nil {
			return nil, err
		}
	}
	due, err := payment.DueOf(ctx, a.o.DB.Read, supplierID, from, now, n)
	for _, m := range due {
		jobs = append(jobs, work.Job{ID: m.ID, Lane: supplierID, At: m.NextAt})
	}
	return jobs, err
}

// job is an order that this node may query now.
type job struct {
	*order.Order
	attempts []*payment.Attempt // newest first
	lease    int64              // its next_at while it is claimed
	begun    *suppliercall.Done // the row of its query, written with the claim; nil = none, or it is used
}

// take returns the row of the query for the one that makes or drops it.
func (j *job) take() *suppliercall.Done {
	d := j.begun
	j.begun = nil
	return d
}

// Claim counts the attempt and writes the lease, by compare-and-set on the due time, so that
// only one of two nodes queries. The rows of the queries are written in the same transaction:
// it is committed before they are made.
func (a *Worker) Claim(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*job], error) {
	of, ids := make(map[int64]work.Slot, len(slots)), make([]int64, len(slots))
	for i, x := range slots {
		of[x.ID], ids[i] = x, x.ID
	}
	var all []work.Claimed[*job]
	err := a.o.DB.SharedTx(ctx, func(ctx context.Context, tx db.Tx) error {
		all = nil
		now := a.o.DB.Now()
		var rows []*order.Order
		err := tx.NewRaw(
			"UPDATE orders SET next_at = ?, lease_owner = ?, query_tries = query_tries + 1 WHERE id IN (?) AND next_at <= ? AND "+
				payment.IsQueried+" RETURNING "+
				a.o.DB.Columns((*order.Order)(nil)), l.Until, l.Owner, bun.List(ids), now, now).Scan(ctx, &rows)
		if err != nil || len(rows) == 0 {
			return err
		}
		attempts, err := payment.AttemptsOf(ctx, tx, ids)
		if err != nil {
			return err
		}
		var querying []*job
		var calls []suppliercall.Call
		for _, o := range rows {
			j := &job{Order: o, attempts: attempts[o.ID], lease: l.Until}
			all = append(all, work.Claimed[*job]{Slot: of[o.ID], Row: j})
			if s, queryable := a.supplierOf(j); queryable {
				querying, calls = append(querying, j), append(calls, queryOf(j, s, j.ref()))
			}
		}
		w := tx.Writes()
		for i, d := range a.o.Calls.Begin(w, calls...) {
			querying[i].begun = d
		}
		return w.Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("claim orders: %w", err)
	}
	return all, nil
}

// Release undoes a claim without counting an attempt.
func (a *Worker) Release(ctx context.Context, j *job, at int64) error {
	a.mu.Lock()
	a.behind(j.at(), at)
	a.mu.Unlock()
	if d := j.take(); d != nil {
		a.o.Calls.Drop(ctx, d)
	}
	_, err := a.o.DB.NewRaw(
		"UPDATE orders SET next_at = ?, lease_owner = NULL, query_tries = query_tries - 1 WHERE id = ? AND version = ? AND next_at = ?",
		at, j.ID, j.Version, j.lease).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release an order: %w", err)
	}
	return nil
}

// ReleaseLeases makes the orders due again that were claimed by boots that have ended. The
// attempts stay counted, because the supplier may have been queried.
func ReleaseLeases(ctx context.Context, d *db.DB, boots []int64) (int64, error) {
	if len(boots) == 0 {
		return 0, nil
	}
	now := d.Now()
	res, err := d.NewRaw("UPDATE orders SET next_at = ?, lease_owner = NULL WHERE next_at > ? AND next_at <= ? AND lease_owner IN (?) AND "+
		order.IsOpen("orders"),
		now, now, now+lease.Microseconds(), bun.List(boots)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("release orders of earlier runs: %w", err)
	}
	return res.RowsAffected()
}

// open returns the attempt that may still be paid, or nil.
func (j *job) open() *payment.Attempt { return payment.OpenOf(j.attempts) }

// at returns the supplier to query.
func (j *job) at() int64 {
	if open := j.open(); open != nil {
		return open.At(j.Order)
	}
	return j.SupplierID
}

// result is the result of one run.
type result struct {
	*job
	calls   []*suppliercall.Done
	message *payment.Message // to confirm; nil = no change
	next    int64            // next query, if the order stays open; 0 = unchanged
	stuck   bool             // no step is left
	answer  supplier.Answer
	at      supplier.Entry
}

func (a *Worker) run(ctx context.Context, _ work.Slot, j *job) work.Ran[*result] {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	r := &result{job: j}
	err := a.push(ctx, r)
	if d := j.take(); d != nil { // the settings have changed, and nothing was queried
		a.o.Calls.Drop(ctx, d)
	}
	if err != nil && len(r.calls) == 0 {
		if !errors.Is(err, suppliercall.ErrDown) && ctx.Err() == nil {
			a.o.Log.Error("ask about an order", "order_no", j.OrderNo, "error", db.ErrorText(err))
		}
		return work.Ran[*result]{ReleaseAt: a.o.DB.Now() + time.Second.Microseconds()}
	}
	ok := true
	for _, d := range r.calls {
		ok = ok && d.Class.Healthy()
	}
	return work.Ran[*result]{Results: []*result{r}, OK: ok, Took: time.Since(start)}
}
