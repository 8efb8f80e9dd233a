package notify

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

// results commits the outcomes of attempts: the deliveries, and with them breakers, the health
// of endpoints, figures and exceptions.
type results struct {
	o      *Options
	health *health
	pull   func(ids []int64)
}

// resultRow is an outcome as a row of values joined by the update.
type resultRow struct {
	ID         int64  `bun:"delivery"`
	Attempts   int64  `bun:"attempts"`
	Owner      int64  `bun:"owner"`
	Status     string `bun:"status"`
	NextAt     *int64 `bun:"next_at"`
	LastClass  string `bun:"last_class"`
	LastError  string `bun:"last_error"`
	FinishedAt *int64 `bun:"finished_at"`

	// The first attempt, which is stored in its delivery; unset for others.
	FirstClass    string `bun:"first_class,nullzero"`
	FirstStatus   *int64 `bun:"first_status"`
	FirstAt       *int64 `bun:"first_at"`
	FirstTookUS   *int64 `bun:"first_took_us"`
	FirstNode     string `bun:"first_node,nullzero"`
	FirstURL      string `bun:"first_url,nullzero"`
	FirstRequest  string `bun:"first_request,nullzero"`
	FirstResponse string `bun:"first_response,nullzero"`
	FirstBody     []byte `bun:"first_body"`
	FirstError    string `bun:"first_error,nullzero"`
}

// updateResults writes results to the deliveries that are still claimed by their owner for that
// attempt, which one update of each row must find.
var updateResults = func() string {
	var set strings.Builder
	for _, column := range []string{"class", "status", "at", "took_us", "node", "url", "request", "response", "body", "error"} {
		set.WriteString(", first_" + column + " = coalesce(_v.first_" + column + ", deliveries.first_" + column + ")")
	}
	return "UPDATE deliveries SET status = _v.status, next_at = _v.next_at, lease_owner = 0," +
		" last_class = _v.last_class, last_error = _v.last_error, finished_at = _v.finished_at" + set.String() + " FROM _v" +
		" WHERE deliveries.id = _v.delivery AND deliveries.attempts = _v.attempts AND deliveries.lease_owner = _v.owner" +
		" AND deliveries.status = '" + string(Sending) + "'"
}()

// newResult returns an outcome as stored; now is the time of writing (Unix µs), and owner this boot.
func newResult(o *outcome, now, owner int64) resultRow {
	a := &o.attempt
	r := resultRow{
		ID: o.claimed.ID, Attempts: o.claimed.Attempts, Owner: owner, Status: string(o.status), NextAt: o.nextAt,
		LastClass: string(a.Class), LastError: a.Error,
	}
	if o.status != RetryWait {
		r.FinishedAt = &now
	}
	if o.isFirst() {
		status := int64(a.HTTPStatus)
		r.FirstClass, r.FirstStatus, r.FirstAt, r.FirstTookUS, r.FirstNode, r.FirstURL = string(a.Class), &status, &a.StartedAt, &a.TookUS,
			a.Node, a.URL
		r.FirstRequest, r.FirstResponse, r.FirstError = a.RequestHeader, a.ResponseHeader, a.Error
		if len(a.ResponseBody) > 0 {
			r.FirstBody = a.ResponseBody
		}
	}
	return r
}

// isFirst reports whether the attempt is stored in its delivery.
func (o *outcome) isFirst() bool { return o.claimed.Attempts == 1 }

// commit writes a batch: the deliveries by compare-and-set on owner and attempt, with their
// first attempts, and the other attempts. If a row was leased again in between, only the
// attempt is stored: a delivery ends once.
func (r *results) commit(ctx context.Context, tx db.Tx, batch []*outcome) (func(), error) {
	now := r.o.DB.Now()
	rows := make([]resultRow, len(batch))
	for i, o := range batch {
		rows[i] = newResult(o, now, r.o.DB.Boot())
	}
	if plain(batch) {
		return r.commitPlain(ctx, tx, batch, rows, now)
	}
	var mine []int64
	err := tx.Prepared(ctx, &mine, "WITH _v ? "+updateResults+" RETURNING id", bulk.Each(&rows))
	if err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	var won, lost []*outcome
	for _, o := range batch {
		if slices.Contains(mine, o.claimed.ID) {
			won = append(won, o)
		} else {
			lost = append(lost, o)
		}
	}
	late, err := r.storeLost(ctx, tx, lost)
	if err != nil {
		return nil, err
	}
	folded, err := r.o.Breakers.Fold(ctx, tx, r.samples(slices.Concat(won, late)))
	if err != nil {
		return nil, err
	}
	w, settled := tx.Writes(), func() {}
	if len(won) > 0 {
		r.write(w, won, now)
		if settled, err = r.settle(ctx, tx, w, won); err != nil {
			return nil, err
		}
		if err := r.openExhausted(ctx, tx, w, won); err != nil {
			return nil, err
		}
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write attempts: %w", err)
	}
	return func() { r.applyBreakers(folded); settled() }, nil
}

// plain reports whether nothing but the deliveries depends on a batch that has not been tried yet:
// its one recipient has acknowledged its one delivery, as nearly all do.
func plain(batch []*outcome) bool {
	o := batch[0]
	return len(batch) == 1 && !o.tried && o.attempt.Class == OK && !o.claimed.Shared
}

// commitPlain writes such a result in the expectation that the delivery is still this node's. If
// it is not (db.ErrStale), the batch runs again.
func (r *results) commitPlain(ctx context.Context, tx db.Tx, batch []*outcome, rows []resultRow, now int64) (func(), error) {
	batch[0].tried = true
	w := tx.Writes()
	w.GuardEach(&rows, updateResults)
	r.write(w, batch, now)
	if err := w.ExecAlone(ctx); err != nil {
		return nil, fmt.Errorf("write a result: %w", err)
	}
	// Nearly always there is nothing more. What there is comes in the order in which commit locks it;
	// if it fails, the breaker or the endpoint lacks a success.
	folded, err := r.o.Breakers.Fold(ctx, tx, r.samples(batch))
	if err != nil {
		return nil, err
	}
	w = tx.Writes()
	settled, err := r.settle(ctx, tx, w, batch)
	if err != nil {
		return nil, err
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write the health of an endpoint: %w", err)
	}
	return func() { r.applyBreakers(folded); settled() }, nil
}

// write adds to the writes what is stored of results beside their deliveries.
func (r *results) write(w *db.Writes, won []*outcome, now int64) {
	var attempts []Attempt
	for _, o := range won {
		if !o.isFirst() {
			attempts = append(attempts, o.attempt)
		}
	}
	if len(attempts) > 0 {
		w.Insert(&attempts, "")
	}
	counted(now, won).Write(w, r.o.DB)
}

// storeLost stores the attempts of deliveries that are not this node's claim any more, and
// returns those that were not stored yet. A result whose commit was not confirmed comes again:
// if it was stored, the delivery has ended or its row waits, and the attempt must count once.
func (r *results) storeLost(ctx context.Context, tx db.Tx, lost []*outcome) (late []*outcome, err error) {
	if len(lost) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(lost))
	for i, o := range lost {
		ids[i] = o.claimed.ID
	}
	type first struct {
		ID, FirstAt int64
		FirstNode   string
	}
	var firsts []first
	err = tx.NewRaw("SELECT id, first_at, first_node FROM deliveries WHERE id IN (?) AND first_at IS NOT NULL", bun.List(ids)).Scan(ctx, &firsts)
	if err != nil {
		return nil, fmt.Errorf("read first attempts: %w", err)
	}
	var attempts []Attempt
	for _, o := range lost {
		if !o.isFirst() || !slices.Contains(firsts, first{o.claimed.ID, o.attempt.StartedAt, o.attempt.Node}) {
			attempts = append(attempts, o.attempt)
		}
	}
	if len(attempts) == 0 {
		return nil, nil
	}
	var fresh []int64
	_, err = tx.NewInsert().Model(&attempts).On("CONFLICT (id) DO NOTHING").Returning("id").Exec(ctx, &fresh)
	if err != nil {
		return nil, fmt.Errorf("write lost attempts: %w", err)
	}
	return slices.DeleteFunc(lost, func(o *outcome) bool { return !slices.Contains(fresh, o.attempt.ID) }), nil
}

// written logs and measures a committed result, and nudges its retry.
func (r *results) written(o *outcome) {
	r.o.Log.Info("notify", "notification", o.claimed.PublicID(), "type", o.claimed.EventType, "attempt", o.attempt.Number,
		"class", o.attempt.Class, "http_status", o.attempt.HTTPStatus, "took_ms", o.attempt.TookUS/1000, "result", o.status)
	metric.Notifications.WithLabelValues(string(o.status)).Inc()
	if o.claimed.Attempts == 1 {
		metric.FirstSeconds.Observe(float64(o.attempt.StartedAt-o.claimed.CreatedAt) / 1e6)
	}
	if o.status == RetryWait {
		r.o.Nudger.Later(queue.Nudge{Delivery: o.claimed.ID, Recipient: o.claimed.RecipientID, At: *o.nextAt})
	}
}

// openExhausted opens the exceptions of notifications that ran out of attempts, in the
// transaction that ends them.
func (r *results) openExhausted(ctx context.Context, tx db.Tx, w *db.Writes, won []*outcome) error {
	var items []*exception.Item
	for _, o := range won {
		if o.status != Exhausted {
			continue
		}
		var order struct {
			OrderNo    string
			MerchantID int64
			Amount     int64
			Currency   string
		}
		err := tx.NewRaw("SELECT order_no, merchant_id, amount, currency FROM orders WHERE id = ?", o.claimed.SubjectID).Scan(ctx, &order)
		if err != nil {
			return fmt.Errorf("read the order of an exhausted notification: %w", err)
		}
		kind, subject := exceptionKey(o.claimed.PublicID(), o.claimed.Recipient())
		metric.Exceptions.WithLabelValues(kind).Inc()
		detail := map[string]any{
			"type": o.claimed.EventType, "attempts": o.attempt.Number, "last_class": o.attempt.Class, "last_error": o.attempt.Error,
		}
		if o.claimed.ToSubscriber {
			if s := r.o.Directory().ByID(o.claimed.RecipientID); s != nil {
				detail["subscriber"] = s.Code
			}
		}
		items = append(items, &exception.Item{
			Kind: kind, MerchantID: order.MerchantID, OrderID: o.claimed.SubjectID,
			OrderNo: order.OrderNo, Subject: subject, Amount: order.Amount, Currency: order.Currency,
			Detail: exception.Detail(detail),
		})
	}
	exception.Open(tx, w, r.o.DB, items)
	return nil
}

// samples converts the results of attempts for the breakers.
func (r *results) samples(batch []*outcome) []breaker.Sample {
	all := make([]breaker.Sample, len(batch))
	for i, o := range batch {
		all[i] = breaker.Sample{Recipient: o.claimed.Recipient(), Generation: o.generation, Result: r.verdict(o)}
	}
	return all
}

// verdict is what an attempt proves about its recipient. A failure on our side, or for lack of
// an endpoint, proves nothing. Nor does an endpoint that is gone, because it is disabled, one
// that works and asks for fewer notifications (429), or a merchant that is not connected, which
// is sent everything once it is. A process that was stopped finds all its attempts timed out when
// it resumes, which would otherwise park healthy recipients.
func (r *results) verdict(o *outcome) breaker.Result {
	switch {
	case o.attempt.Class == Gone, o.attempt.Class != OK && o.attempt.HTTPStatus == http.StatusTooManyRequests:
		return breaker.Unclear
	case o.paused && o.attempt.Class == OK:
		return breaker.Succeeded // whether it was slow is unknown
	case o.paused:
		return breaker.Unclear
	}
	switch o.attempt.Class {
	case OK:
		m := r.o.Directory().ByID(o.claimed.RecipientID)
		if m != nil && m.Settings.Breaker.SlowMS > 0 && o.attempt.TookUS >= m.Settings.Breaker.SlowMS*1000 {
			return breaker.Failed
		}
		return breaker.Succeeded
	case Internal, Blocked, BadAddress, Cancelled, NotConnected:
		return breaker.Unclear
	}
	return breaker.Failed
}

// applyBreakers applies breaker changes of committed results on this node, and reads what was
// parked for recipients whose breaker has closed.
func (r *results) applyBreakers(f *breaker.Folded) {
	r.o.Breakers.Committed(f)
	var closed []int64
	for _, c := range f.Changes {
		metric.BreakerChanges.WithLabelValues(string(c.To)).Inc()
		r.o.Log.Warn("breaker", "recipient_id", c.OwnerID, "from", c.From, "to", c.To, "cause", c.Cause, "failures", c.Failures)
		if c.To == breaker.Closed {
			closed = append(closed, c.OwnerID)
		}
	}
	if len(closed) > 0 {
		r.pull(closed)
	}
}
