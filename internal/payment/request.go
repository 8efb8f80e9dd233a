package payment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/stock"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// request is a merchant's request about one of its orders: to start a payment, or to close it.
type request struct {
	merchant *merchant.Merchant
	orderNo  string
	pay      *PayRequest // nil = close the order
}

func (r *request) key() string { return r.orderNo }

type answer struct {
	order   *order.Order
	err     error // of this item only
	moved   bool
	start   *starting // for a request to pay
	queried []Moment
	nudges  []queue.Nudge
}

// Cancel closes an order safely: at once if no payment was started, otherwise through closing,
// because a payment may be under way. Errors: order.ErrNotFound, ErrState, suppliercall.ErrShadow.
func (p *Processor) Cancel(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error) {
	if err := p.o.Calls.Shadow(); err != nil {
		return nil, err
	}
	a, err := p.requests.Do(ctx, &request{merchant: m, orderNo: orderNo})
	if err != nil {
		return nil, err
	}
	return a.order, a.err
}

// answered nudges what a committed batch of requests made due.
func (p *Processor) answered(_ []*request, answers []answer) {
	var nudges []queue.Nudge
	var queried []Moment
	var moments []int64
	for _, a := range answers {
		nudges = append(nudges, a.nudges...)
		queried = append(queried, a.queried...)
		if a.start != nil && !a.start.again && *a.order.NextAt != a.order.ExpiresAt {
			moments = append(moments, *a.order.NextAt)
		}
		if a.moved {
			metric.OrdersMoved.WithLabelValues(string(a.order.Status)).Inc()
		}
	}
	p.o.Nudger.Now(nudges)
	p.o.Nudger.Expiring(moments)
	p.query(queried)
}

func (p *Processor) answer(ctx context.Context, tx db.Tx, items []*request) ([]answer, error) {
	nos := make([]string, len(items))
	for i, r := range items {
		nos[i] = r.orderNo
	}
	orders, err := order.ByNos(ctx, tx, p.o.DB, nos)
	if err != nil {
		return nil, err
	}
	attemptsOf, err := openAttempts(ctx, tx, slices.Collect(maps.Values(orders)))
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(items))
	c := closing{p: p, by: order.ByCancel}
	var started []order.Change
	var attempts []*Attempt
	w := tx.Writes()
	for i, r := range items {
		o := orders[r.orderNo]
		if o == nil || o.MerchantID != r.merchant.ID {
			answers[i].err = order.ErrNotFound
			continue
		}
		answers[i].order = o
		switch {
		case r.pay == nil && (o.Status == order.Pending || o.Status == order.Paying):
			c.add(o, attemptsOf[o.ID], "merchant:"+r.merchant.Code)
			answers[i].moved = true
		case r.pay == nil && (o.Status == order.Closing || o.Status == order.Closed):
			// a repeat: the same answer again
		case r.pay != nil && (o.Status == order.Pending || o.Status == order.Paying):
			x, err := p.pick(o, attemptsOf[o.ID], r.pay)
			if answers[i].start, answers[i].err = x, err; err != nil || x.again {
				continue
			}
			attempts = append(attempts, x.attempt)
			next := p.firstQuery(o, x.entry)
			o.NextAt = &next
			if o.Status == order.Paying { // an earlier attempt has ended
				w.Add(tx.NewRaw("UPDATE orders SET next_at = ?, query_tries = 0 WHERE id = ?", next, o.ID))
				continue
			}
			started = append(started, order.Change{Order: o, To: order.Paying, Cause: order.PayStarted, Actor: "merchant:" +
				r.merchant.Code})
			answers[i].moved = true
		default:
			answers[i].err = fmt.Errorf("%w: %s is %s", ErrState, o.OrderNo, o.Status)
		}
	}
	if len(attempts) > 0 {
		upsertAttempts(w, attempts)
	}
	if err := order.Move(w, p.o.DB, started); err != nil {
		return nil, err
	}
	nudges, err := c.write(ctx, tx, w)
	if err != nil {
		return nil, err
	}
	if len(answers) > 0 {
		answers[0].queried = c.queried
	}
	for i, a := range answers {
		if a.order != nil {
			answers[i].nudges = nudges[a.order.ID]
		}
	}
	return answers, nil
}

// openAttempts reads the attempts of orders that are being paid or closed, newest first. A
// pending order has no open attempt.
func openAttempts(ctx context.Context, tx db.Tx, orders []*order.Order) (map[int64][]*Attempt, error) {
	var ids []int64
	for _, o := range orders {
		if o.Status == order.Paying || o.Status == order.Closing {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return AttemptsOf(ctx, tx, ids)
}

// AttemptsOf reads the attempts of orders, newest first.
func AttemptsOf(ctx context.Context, q bun.IDB, ids []int64) (map[int64][]*Attempt, error) {
	var rows []*Attempt
	if err := q.NewSelect().Model(&rows).Where("pa.order_id IN (?)", bun.List(ids)).OrderExpr("pa.id DESC").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	of := map[int64][]*Attempt{}
	for _, a := range rows {
		of[a.OrderID] = append(of[a.OrderID], a)
	}
	return of, nil
}

// Orders reads the orders of Ref.Row, ordered by id, and their attempts, newest first.
func Orders(ctx context.Context, q bun.IDB, refs []act.Ref) ([]*order.Order, map[int64][]*Attempt, error) {
	orders, err := act.Rows[*order.Order](ctx, q, refs)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]int64, len(orders))
	for i, o := range orders {
		ids[i] = o.ID
	}
	attempts, err := AttemptsOf(ctx, q, ids)
	return orders, attempts, err
}

// OpenOf returns the open attempt, or nil.
func OpenOf(attempts []*Attempt) *Attempt {
	if i := slices.IndexFunc(attempts, (*Attempt).open); i >= 0 {
		return attempts[i]
	}
	return nil
}

// canQuery reports whether a supplier can be queried about payments.
func (p *Processor) canQuery(supplierID int64) (supplier.Entry, bool) {
	s, ok := p.o.Settings.Current().Suppliers.ByID(supplierID)
	return s, ok && p.o.Calls != nil && s.Can().Querier != nil
}

// closing moves orders towards closed. An order that cannot be paid any more is closed at once;
// any other waits in closing, where it may still be paid, until the supplier has answered or,
// if it cannot be queried, until the grace period ends.
type closing struct {
	p       *Processor
	by      order.Cause
	changes []order.Change
	queried []Moment // orders now closing whose supplier must be queried
}

// add takes a pending, paying or closing order with its attempts.
func (c *closing) add(o *order.Order, attempts []*Attempt, actor string) {
	now := c.p.o.DB.Now()
	change := order.Change{Order: o, To: order.Closed, Cause: c.by, Actor: actor}
	open, at := OpenOf(attempts), queriedAt(o, attempts)
	s, canQuery := c.p.canQuery(at)
	switch {
	case o.Status == order.Closing:
		change.Cause = order.ByGrace
		o.ClosedAt = &now
	// An imported order that is being paid has no attempt.
	case o.Status == order.Paying && (open != nil || len(attempts) == 0), o.Status == order.Pending && canQuery && s.QueryPending:
		change.To = order.Closing
		next := now + c.p.o.ClosingGrace.Microseconds()
		if canQuery {
			next = now + c.p.o.Steps.firstClose()
			c.queried = append(c.queried, Moment{ID: o.ID, NextAt: next, Status: order.Closing, ExpiresAt: o.ExpiresAt, Supplier: at})
		}
		o.NextAt, o.CloseReason = &next, string(c.by)
	default:
		o.ClosedAt, o.CloseReason = &now, string(c.by)
	}
	c.changes = append(c.changes, change)
}

// queriedAt returns the supplier to query about an order: that of its open attempt, else its own.
func queriedAt(o *order.Order, attempts []*Attempt) int64 {
	if open := OpenOf(attempts); open != nil {
		return open.At(o)
	}
	return o.SupplierID
}

// write sends the changes with attempts, notifications and stock, together with the writes
// gathered before, and returns the nudges by order.
func (c *closing) write(ctx context.Context, tx db.Tx, w *db.Writes) (map[int64][]queue.Nudge, error) {
	d, now := c.p.o.DB, c.p.o.DB.Now()
	if err := order.Move(w, d, c.changes); err != nil {
		return nil, err
	}
	var ids, withItems []int64
	var facts []notify.Fact
	for _, ch := range c.changes {
		if ch.To.Open() {
			continue
		}
		ids = append(ids, ch.Order.ID)
		if ch.Order.HasItems {
			withItems = append(withItems, ch.Order.ID)
		}
		facts = append(facts, c.p.fact(ch.Order, ch.To, ch.Order.Version, now))
	}
	if len(ids) > 0 {
		w.Add(closeAttempts(tx, ids, now))
	}
	made, err := notify.Create(ctx, w, d, c.p.o.Local, facts)
	if err != nil {
		return nil, err
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write the changes of orders: %w", err)
	}
	// Stock comes last: many orders share it, and it is locked for the shortest time.
	if err := stock.Release(ctx, tx, d, withItems); err != nil {
		return nil, err
	}
	nudges := make(map[int64][]queue.Nudge, len(made))
	for i, n := range made {
		nudges[ids[i]] = n
	}
	return nudges, nil
}
