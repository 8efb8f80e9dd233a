package notify

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// resultWait bounds how long one result may wait for its commit.
const resultWait = 10 * time.Second

// standstill is how far beyond its timeout an attempt ends only where its process,
// or the whole machine, was stopped.
const standstill = time.Second

// outcome is what one attempt means for its delivery.
type outcome struct {
	attempt    Attempt
	claimed    claimed
	status     Status
	nextAt     *int64 // of RetryWait
	generation int64  // of the breaker under which it began
	stood      bool   // this process stood still meanwhile: a failure is not the merchant's
	// endpoint is the merchant's address whose health the attempt tells, if any.
	endpoint string
}

// deliver makes one attempt, with what goes in the same digest. The slot is free as
// soon as the merchant has taken it; the row stays leased until the result is
// committed.
func (d *Dispatcher) deliver(t *ticket, c claimed, more ...claimed) {
	if d.o.DB.Now()+d.o.Timeout.Microseconds() > c.Lease {
		// This process stood still, or the database was slow: the attempt could outlast
		// the lease.
		d.handBack(t, append(more, c)...)
		return
	}
	m := d.o.Book().ByID(c.MerchantID)
	switch {
	case m != nil && m.Broken: // it has become so since the claim
		d.handBack(t, append(more, c)...)
		return
	case m != nil && c.Channel == Unrouted:
		d.route(t, c, m)
		return
	}
	p := d.plan(m, c)
	if cause, why := d.faultOf(m, c, p); cause != "" {
		d.stepAside(t, p.endpoint, cause, why, append(more, c)...)
		return
	}
	if until := d.protected(t, c, p); until > 0 {
		d.putOff(t, c, until)
		return
	}
	p.msg.More = parts(more)
	start := d.o.DB.Now()
	failpoint.Hit("before_send")
	late := time.AfterFunc(slowAfter, func() { d.overdue(t) })
	span := d.spanOf(c)
	res := d.send(c, p)
	endSpan(span, c, p.msg, res)
	failpoint.Hit("after_send")
	late.Stop()
	if res.Class == Cancelled {
		d.handBack(t, append(more, c)...)
		return
	}
	if d.blockedHere(res) {
		d.stepAside(t, p.endpoint, BlockedHere, fmt.Sprintf("blocked on node %s alone: %s", d.o.DB.NodeName(), res.Error), append(more, c)...)
		return
	}
	end := d.o.DB.Now()
	defer d.writeGathered(more, p, start, end, res)
	o := d.judge(c, p, start, end, res)
	o.generation = t.generation

	if res.Class != OK {
		// The slot waits for the commit: the breaker must know of a failure before
		// the next attempt begins.
		d.write(o)
		d.mu.Lock()
		d.answered(t, false, res.Took)
		d.release(t)
		d.mu.Unlock()
		return
	}
	d.mu.Lock()
	d.sent++
	d.ended(c)
	d.answered(t, true, res.Took)
	d.release(t)
	d.mu.Unlock()
	d.write(o)
	d.mu.Lock()
	d.sent--
	d.pump()
	d.mu.Unlock()
}

func waitsOf(s merchant.Settings) Schedule {
	waits := make(Schedule, len(s.WaitsMS))
	for i, ms := range s.WaitsMS {
		waits[i] = time.Duration(ms) * time.Millisecond
	}
	return waits
}

// send makes the planned attempt. A channel that panics costs the attempt and not
// the node: it would take everybody's attempts with it, and do so again after each
// start. Its words may hold what was sent, and stay unsaid.
func (d *Dispatcher) send(c claimed, p plan) (res Result) {
	start := time.Now()
	defer func() {
		if recover() != nil {
			res = Result{Class: Internal, Took: time.Since(start), Error: "the channel " + c.Channel + " broke down"}
			d.o.Log.Error("a channel panicked", "channel", c.Channel, "notification", p.msg.ID, "stack", string(debug.Stack()))
		}
	}()
	return send(d.ctx, d.o.Channels, c.Channel, p)
}

// send makes the planned attempt.
func send(ctx context.Context, channels map[string]Channel, channel string, p plan) Result {
	ch, msg := channels[channel], p.msg
	if ch == nil {
		return Result{Class: Internal, Error: fmt.Sprintf("channel %q is not part of this program", channel)}
	}
	if p.refused != nil {
		return *p.refused
	}
	if len(msg.Body) == 0 {
		return Result{Class: Internal, Error: "the event behind this notification is gone"}
	}
	res := ch.Send(ctx, msg)
	metric.Attempts.WithLabelValues(string(res.Class)).Inc()
	metric.AttemptSeconds.Observe(res.Took.Seconds())
	return res
}

// judge turns a result into the delivery's next state. Waits count from the end
// of the attempt: what failed in one message is due again at one moment.
func (d *Dispatcher) judge(c claimed, p plan, start, end int64, res Result) *outcome {
	o := &outcome{claimed: c, endpoint: p.endpoint, attempt: newAttempt(d.o.DB, c, p, start, res)}
	o.stood = res.Took > p.msg.Timeout+standstill
	if p.refused != nil || o.stood && res.Class != OK {
		o.endpoint = "" // nothing was sent, or nobody was here to hear the answer: it says nothing of the address
	}
	wait, again := p.waits.After(c.Attempts, c.ScheduleFrom)
	if p.final || p.last && gone(o) {
		again = false
	}
	switch {
	case res.Class == OK:
		o.status = Delivered
	case again:
		at := end + wait.Microseconds()
		o.status, o.nextAt = RetryWait, &at
	default:
		o.status = Exhausted
	}
	return o
}

// newAttempt is the record of an attempt. Its texts come from outside.
func newAttempt(d *db.DB, c claimed, p plan, start int64, res Result) Attempt {
	a := Attempt{
		ID: d.NewID(), DeliveryID: c.ID, MerchantID: c.MerchantID, Number: c.Attempts, URL: Shown(p.msg.URL),
		Class: res.Class, HTTPStatus: res.Status, StartedAt: start, TookUS: res.Took.Microseconds(),
		Node: d.NodeName(), RequestHeader: textlimit.Storable(res.RequestHeader), ResponseHeader: textlimit.Storable(res.ResponseHeader),
		ResponseBody: res.ResponseBody, Error: textlimit.Storable(res.Error),
	}
	if a.ResponseBody == nil {
		a.ResponseBody = []byte{}
	}
	return a
}

// write commits the result and nudges the retry. A result that cannot be written
// leaves the row leased: it is sent again after the lease, which is what "at
// least once" means.
func (d *Dispatcher) write(o *outcome) {
	var folded *breaker.Folded
	var err error
	for try := range 5 {
		if folded, err = d.results.Do(context.Background(), o); err == nil {
			break
		}
		time.Sleep(time.Duration(try+1) * 100 * time.Millisecond)
	}
	if err != nil {
		d.o.Log.Error("write the result of an attempt", "notification", o.claimed.publicID(), "error", db.Explain(err))
		return
	}
	d.heed(folded)
	d.o.Log.Info("notify", "notification", o.claimed.publicID(), "type", o.claimed.EventType, "attempt", o.attempt.Number,
		"class", o.attempt.Class, "http_status", o.attempt.HTTPStatus, "took_ms", o.attempt.TookUS/1000, "result", o.status)
	metric.Notifications.WithLabelValues(string(o.status)).Inc()
	if o.claimed.Attempts == 1 {
		metric.FirstSeconds.Observe(float64(o.attempt.StartedAt-o.claimed.CreatedAt) / 1e6)
	}
	if o.status == RetryWait {
		d.o.Nudger.Later(queue.Nudge{Delivery: o.claimed.ID, Merchant: o.claimed.MerchantID, At: *o.nextAt})
	}
}

// resultRow is an outcome as a row of values that the update joins.
type resultRow struct {
	ID         int64  `bun:"delivery"`
	Attempts   int64  `bun:"attempts"`
	Status     string `bun:"status"`
	NextAt     *int64 `bun:"next_at"`
	LastClass  string `bun:"last_class"`
	LastError  string `bun:"last_error"`
	FinishedAt *int64 `bun:"finished_at"`
}

// writeResults commits a batch: the attempts for people, the deliveries by
// compare-and-set on owner and attempt. Of a row that was leased again in between
// only the attempt is kept: there is one success mark per delivery.
//
// What the batch did to breakers is told once, with its first outcome.
func (d *Dispatcher) writeResults(ctx context.Context, tx db.Tx, batch []*outcome) ([]*breaker.Folded, error) {
	now := d.o.DB.Now()
	rows := make([]resultRow, len(batch))
	attempts := make([]Attempt, len(batch))
	for i, o := range batch {
		attempts[i] = o.attempt
		rows[i] = resultRow{
			ID: o.claimed.ID, Attempts: o.claimed.Attempts, Status: string(o.status), NextAt: o.nextAt,
			LastClass: string(o.attempt.Class), LastError: o.attempt.Error,
		}
		if o.status != RetryWait {
			rows[i].FinishedAt = &now
		}
	}
	var mine []int64
	err := tx.Prepared(ctx, &mine, "WITH _r ? UPDATE deliveries SET status = _r.status, next_at = _r.next_at, lease_owner = 0,"+
		" last_class = _r.last_class, last_error = _r.last_error, finished_at = _r.finished_at FROM _r"+
		" WHERE deliveries.id = _r.delivery AND deliveries.attempts = _r.attempts AND deliveries.lease_owner = ?"+
		" AND deliveries.status = ? RETURNING id", bulk.Each(&rows), d.o.DB.Boot(), Sending)
	if err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	did := make([]*breaker.Folded, len(batch))
	if did[0], err = d.o.Breakers.Fold(ctx, tx, d.samples(batch)); err != nil {
		return nil, err
	}
	won := make(map[int64]bool, len(mine))
	for _, id := range mine {
		won[id] = true
	}
	w := tx.Writes()
	w.Insert(&attempts, "CONFLICT (id) DO NOTHING")
	if len(won) > 0 {
		d.counted(batch, won).Write(w, d.o.DB)
		if err := d.settle(ctx, tx, w, batch, won); err != nil {
			return nil, err
		}
		if err := d.openExhausted(ctx, tx, w, batch, won); err != nil {
			return nil, err
		}
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write attempts: %w", err)
	}
	return did, nil
}

// openExhausted puts notifications that ran out of attempts on the exception
// desk, in the transaction that ends them.
func (d *Dispatcher) openExhausted(ctx context.Context, tx db.Tx, w *db.Writes, batch []*outcome, won map[int64]bool) error {
	var items []*compensation.Item
	for _, o := range batch {
		if o.status != Exhausted || !won[o.claimed.ID] {
			continue
		}
		var order struct {
			OrderNo  string
			Amount   int64
			Currency string
		}
		err := tx.NewRaw("SELECT order_no, amount, currency FROM orders WHERE id = ?", o.claimed.SubjectID).Scan(ctx, &order)
		if err != nil {
			return fmt.Errorf("read the order of an exhausted notification: %w", err)
		}
		kind, subject := deskPlace(o.claimed.publicID(), o.claimed.House, o.claimed.MerchantID)
		metric.Exceptions.WithLabelValues(kind).Inc()
		items = append(items, &compensation.Item{
			Kind: kind, MerchantID: o.claimed.MerchantID, OrderID: o.claimed.SubjectID,
			OrderNo: order.OrderNo, Subject: subject, Amount: order.Amount, Currency: order.Currency,
			Detail: compensation.Detail(map[string]any{
				"type": o.claimed.EventType, "attempts": o.attempt.Number, "last_class": o.attempt.Class, "last_error": o.attempt.Error,
			}),
		})
	}
	compensation.Open(tx, w, d.o.DB, items)
	return nil
}

// giveBack returns a claim whose attempt was not made, or that we cut off ourselves,
// so that shutting down costs the merchant's schedule nothing. It is due at the
// moment at.
func (d *Dispatcher) giveBack(at int64, all ...claimed) { d.giveBackAs("", "", at, all...) }

// maxFault bounds the words for a fault.
const maxFault = 300

// giveBackAs is giveBack with why the delivery waits; "" keeps what stood there.
func (d *Dispatcher) giveBackAs(cause Class, why string, at int64, all ...claimed) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	for _, c := range all {
		set := bun.SafeQuery("")
		if cause != "" {
			set = bun.SafeQuery(", last_class = ?, last_error = ?", cause, textlimit.Clip(textlimit.Storable(why), maxFault))
		}
		_, err := d.o.DB.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts - 1, next_at = ?, lease_owner = 0?"+
			" WHERE id = ? AND attempts = ? AND lease_owner = ? AND status = ?",
			RetryWait, at, set, c.ID, c.Attempts, d.o.DB.Boot(), Sending).Exec(ctx)
		if err != nil {
			d.o.Log.Error("give a claim back", "error", db.Explain(err))
		}
	}
}
