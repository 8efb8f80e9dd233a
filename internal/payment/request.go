package payment

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/stock"
)

// request is a merchant's request about one of its orders: to record that a payment was
// started, or to close it.
type request struct {
	merchant *merchant.Merchant
	orderNo  string
	cancel   bool
}

func (r *request) key() string { return r.orderNo }

type answer struct {
	order  *order.Order
	err    error // of this item alone
	moved  bool
	nudges []queue.Nudge
}

// Pay records a payment attempt: from now on money may come, and the timeout waits for
// it. A repeat changes nothing. Errors: order.ErrNotFound, ErrState.
func (p *Processor) Pay(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error) {
	return p.do(ctx, &request{merchant: m, orderNo: orderNo})
}

// Cancel closes an order safely: at once where no payment was started, else through
// closing, because money may be under way. Errors: order.ErrNotFound, ErrState.
func (p *Processor) Cancel(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error) {
	return p.do(ctx, &request{merchant: m, orderNo: orderNo, cancel: true})
}

func (p *Processor) do(ctx context.Context, r *request) (*order.Order, error) {
	a, err := p.requests.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.order, a.err
}

// answered nudges what a committed batch of requests made due.
func (p *Processor) answered(_ []*request, answers []answer) {
	var nudges []queue.Nudge
	for _, a := range answers {
		nudges = append(nudges, a.nudges...)
		if a.moved {
			metric.OrdersMoved.WithLabelValues(string(a.order.Status)).Inc()
		}
	}
	p.o.Nudger.Now(nudges)
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
	answers := make([]answer, len(items))
	c := closing{p: p, by: order.ByCancel}
	var started []order.Change
	var attempts []*Attempt
	for i, r := range items {
		o := orders[r.orderNo]
		if o == nil || o.MerchantID != r.merchant.ID {
			answers[i].err = order.ErrNotFound
			continue
		}
		answers[i].order = o
		switch {
		case r.cancel && (o.Status == order.Pending || o.Status == order.Paying):
			c.add(o, "merchant:"+r.merchant.Code)
			answers[i].moved = true
		case r.cancel && (o.Status == order.Closing || o.Status == order.Closed):
			// a repeat: the same answer again
		case !r.cancel && o.Status == order.Pending:
			started = append(started, order.Change{Order: o, To: order.Paying, Cause: order.PayStarted, Actor: "merchant:" + r.merchant.Code})
			attempts = append(attempts, p.firstAttempt(o))
			answers[i].moved = true
		case !r.cancel && o.Status == order.Paying:
			// started before
		default:
			answers[i].err = fmt.Errorf("%w: %s is %s", ErrState, o.OrderNo, o.Status)
		}
	}
	w := tx.Writes()
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
	for i, a := range answers {
		if a.order != nil {
			answers[i].nudges = nudges[a.order.ID]
		}
	}
	return answers, nil
}

// firstAttempt is the attempt whose reference is the order number.
func (p *Processor) firstAttempt(o *order.Order) *Attempt {
	now := p.o.DB.Now()
	a := &Attempt{
		ID: p.o.DB.NewID(), OrderID: o.ID, SupplierRef: o.OrderNo, Status: Submitted,
		Amount: o.Amount, CreatedAt: now, UpdatedAt: now,
	}
	if s, ok := p.o.Settings.Current().Suppliers.ByID(o.SupplierID); ok {
		a.AccountID = s.AccountID
	}
	return a
}

// closing moves orders towards closed. An order without a started payment is closed at
// once; with one it waits in closing, where it may still be paid, until the supplier has
// answered or the grace is over.
type closing struct {
	p       *Processor
	by      order.Cause
	changes []order.Change
}

// add takes an order that is pending, paying or closing.
func (c *closing) add(o *order.Order, actor string) {
	now := c.p.o.DB.Now()
	change := order.Change{Order: o, To: order.Closed, Cause: c.by, Actor: actor}
	switch o.Status {
	case order.Paying:
		change.To = order.Closing
		next := now + c.p.o.ClosingGrace.Microseconds()
		o.NextAt, o.CloseReason = &next, string(c.by)
	case order.Closing:
		change.Cause = order.ByGrace
		o.ClosedAt = &now
	default:
		o.ClosedAt, o.CloseReason = &now, string(c.by)
	}
	c.changes = append(c.changes, change)
}

// write sends the changes with attempts, notifications and stock, together with the
// writes gathered before, and returns the nudges by order.
func (c *closing) write(ctx context.Context, tx db.Tx, w *db.Writes) (map[int64][]queue.Nudge, error) {
	d, now := c.p.o.DB, c.p.o.DB.Now()
	if err := order.Move(w, d, c.changes); err != nil {
		return nil, err
	}
	var ids, withItems []int64
	var facts []notify.Fact
	for _, ch := range c.changes {
		if ch.To != order.Closed {
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
	made, err := notify.Create(ctx, w, d, c.p.o.Here, facts)
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
