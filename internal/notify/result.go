package notify

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/exception"
)

// results commits what attempts came to: to their deliveries, and with them the
// breakers, the health of addresses, the figures and the exceptions.
type results struct {
	o      *Options
	health *health
	pull   func(merchants []int64)
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

// commit writes a batch: the attempts for people, the deliveries by compare-and-set on
// owner and attempt. Of a row that was leased again in between only the attempt is kept:
// there is one success mark per delivery.
func (r *results) commit(ctx context.Context, tx db.Tx, batch []*outcome) (func(), error) {
	now := r.o.DB.Now()
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
		" AND deliveries.status = ? RETURNING id", bulk.Each(&rows), r.o.DB.Boot(), Sending)
	if err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	folded, err := r.o.Breakers.Fold(ctx, tx, r.samples(batch))
	if err != nil {
		return nil, err
	}
	won := make(map[int64]bool, len(mine))
	for _, id := range mine {
		won[id] = true
	}
	w := tx.Writes()
	w.Insert(&attempts, "CONFLICT (id) DO NOTHING")
	if len(won) > 0 {
		counted(r.o.DB.Now(), batch, won).Write(w, r.o.DB)
		if err := r.settle(ctx, tx, w, batch, won); err != nil {
			return nil, err
		}
		if err := r.openExhausted(ctx, tx, w, batch, won); err != nil {
			return nil, err
		}
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write attempts: %w", err)
	}
	return func() { r.applyBreakers(folded) }, nil
}

// written makes a committed result known, and nudges its retry.
func (r *results) written(o *outcome) {
	r.o.Log.Info("notify", "notification", o.claimed.publicID(), "type", o.claimed.EventType, "attempt", o.attempt.Number,
		"class", o.attempt.Class, "http_status", o.attempt.HTTPStatus, "took_ms", o.attempt.TookUS/1000, "result", o.status)
	metric.Notifications.WithLabelValues(string(o.status)).Inc()
	if o.claimed.Attempts == 1 {
		metric.FirstSeconds.Observe(float64(o.attempt.StartedAt-o.claimed.CreatedAt) / 1e6)
	}
	if o.status == RetryWait {
		r.o.Nudger.Later(queue.Nudge{Delivery: o.claimed.ID, Merchant: o.claimed.MerchantID, At: *o.nextAt})
	}
}

// openExhausted puts notifications that ran out of attempts on the exception
// desk, in the transaction that ends them.
func (r *results) openExhausted(ctx context.Context, tx db.Tx, w *db.Writes, batch []*outcome, won map[int64]bool) error {
	var items []*exception.Item
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
		kind, subject := deskPlace(o.claimed.publicID(), o.claimed.recipient())
		metric.Exceptions.WithLabelValues(kind).Inc()
		items = append(items, &exception.Item{
			Kind: kind, MerchantID: o.claimed.MerchantID, OrderID: o.claimed.SubjectID,
			OrderNo: order.OrderNo, Subject: subject, Amount: order.Amount, Currency: order.Currency,
			Detail: exception.Detail(map[string]any{
				"type": o.claimed.EventType, "attempts": o.attempt.Number, "last_class": o.attempt.Class, "last_error": o.attempt.Error,
			}),
		})
	}
	exception.Open(tx, w, r.o.DB, items)
	return nil
}

// samples is what a batch of attempts says to the breakers.
func (r *results) samples(batch []*outcome) []breaker.Sample {
	all := make([]breaker.Sample, len(batch))
	for i, o := range batch {
		all[i] = breaker.Sample{MerchantID: o.claimed.MerchantID, Generation: o.generation, Result: r.verdict(o)}
	}
	return all
}

// verdict is what an attempt says about the merchant. What failed on our side, or for
// want of an address, says nothing; nor does one that is gone, as it is disabled, or
// a merchant that has not connected: it is released the moment it does. A process
// that was stopped finds all its attempts timed out at once when it goes on, which
// would park merchants that are healthy.
func (r *results) verdict(o *outcome) breaker.Result {
	switch {
	case gone(o):
		return breaker.Unclear
	case o.paused && o.attempt.Class == OK:
		return breaker.Taken // how long it took says nothing
	case o.paused:
		return breaker.Unclear
	}
	switch o.attempt.Class {
	case OK:
		m := r.o.Book().ByID(o.claimed.MerchantID)
		if m != nil && m.Settings.Breaker.SlowMS > 0 && o.attempt.TookUS >= m.Settings.Breaker.SlowMS*1000 {
			return breaker.Failed
		}
		return breaker.Taken
	case Internal, Blocked, BadAddress, Cancelled, NotConnected:
		return breaker.Unclear
	}
	return breaker.Failed
}

// applyBreakers makes known what committed results did to breakers, and fetches what was
// parked for a merchant that can be notified again.
func (r *results) applyBreakers(f *breaker.Folded) {
	r.o.Breakers.Committed(f)
	var healthy []int64
	for _, c := range f.Changes {
		metric.BreakerChanges.WithLabelValues(string(c.To)).Inc()
		r.o.Log.Warn("breaker", "merchant_id", c.MerchantID, "from", c.From, "to", c.To, "cause", c.Cause, "failures", c.Failures)
		if c.To == breaker.Closed {
			healthy = append(healthy, c.MerchantID)
		}
	}
	if len(healthy) > 0 {
		r.pull(healthy)
	}
}
