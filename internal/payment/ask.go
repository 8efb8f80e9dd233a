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

// ask is what a merchant asks of one of its orders: to note that a payment was
// started, or to close it.
type ask struct {
	merchant *merchant.Merchant
	orderNo  string
	cancel   bool
}

func (a *ask) key() string { return a.orderNo }

type answer struct {
	order  *order.Order
	err    error // of this item alone
	moved  bool
	nudges []queue.Nudge
}

// Pay notes a payment attempt: from now on money may come, and the timeout knows
// it. Asking again changes nothing. Errors: order.ErrNotFound, ErrState.
func (p *Processor) Pay(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error) {
	return p.asksFor(ctx, &ask{merchant: m, orderNo: orderNo})
}

// Cancel closes an order safely: at once where no payment was started, else by
// way of closing, because money may be under way. Errors: order.ErrNotFound,
// ErrState.
func (p *Processor) Cancel(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error) {
	return p.asksFor(ctx, &ask{merchant: m, orderNo: orderNo, cancel: true})
}

func (p *Processor) asksFor(ctx context.Context, a *ask) (*order.Order, error) {
	ans, err := p.asks.Do(ctx, a)
	if err != nil {
		return nil, err
	}
	return ans.order, ans.err
}

func (p *Processor) asked(_ []*ask, answers []answer) {
	var nudges []queue.Nudge
	for _, a := range answers {
		nudges = append(nudges, a.nudges...)
		if a.moved {
			metric.OrdersMoved.WithLabelValues(string(a.order.Status)).Inc()
		}
	}
	p.o.Nudger.Now(nudges)
}

func (p *Processor) ask(ctx context.Context, tx db.Tx, items []*ask) ([]answer, error) {
	nos := make([]string, len(items))
	for i, a := range items {
		nos[i] = a.orderNo
	}
	orders, err := order.ByNos(ctx, tx, p.o.DB, nos)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(items))
	c := closing{p: p, by: order.ByCancel}
	var started []order.Change
	var attempts []*Attempt
	for i, a := range items {
		o := orders[a.orderNo]
		if o == nil || o.MerchantID != a.merchant.ID {
			answers[i].err = order.ErrNotFound
			continue
		}
		answers[i].order = o
		switch {
		case a.cancel && (o.Status == order.Pending || o.Status == order.Paying):
			c.add(i, o, "merchant:"+a.merchant.Code)
			answers[i].moved = true
		case a.cancel && (o.Status == order.Closing || o.Status == order.Closed):
			// asked before: the same answer again
		case !a.cancel && o.Status == order.Pending:
			started = append(started, order.Change{Order: o, To: order.Paying, Cause: order.PayStarted, Actor: "merchant:" + a.merchant.Code})
			attempts = append(attempts, p.firstAttempt(o))
			answers[i].moved = true
		case !a.cancel && o.Status == order.Paying:
			// started before
		default:
			answers[i].err = fmt.Errorf("%w: %s is %s", ErrState, o.OrderNo, o.Status)
		}
	}
	w := tx.Writes()
	if len(attempts) > 0 {
		upsertAttempts(w, attempts)
	}
	if err := order.Move(tx, w, p.o.DB, started); err != nil {
		return nil, err
	}
	nudges, err := c.write(ctx, tx, w)
	if err != nil {
		return nil, err
	}
	for i, n := range nudges {
		answers[i].nudges = n
	}
	return answers, nil
}

// firstAttempt is the attempt that the supplier knows by the order number.
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

// closing moves orders towards closed. An order without a started payment is
// closed at once; with one it waits in closing, where money is still welcome,
// until the supplier has answered or the grace is over.
type closing struct {
	p       *Processor
	by      order.Cause
	changes []order.Change
	tags    []int // the caller's index of each change
}

// add takes an order that is pending, paying or closing.
func (c *closing) add(tag int, o *order.Order, actor string) {
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
	c.tags = append(c.tags, tag)
}

// write sends the changes with stock, attempts and notifications, together with
// what was gathered before, and returns the nudges by the caller's index.
func (c *closing) write(ctx context.Context, tx db.Tx, w *db.Writes) (map[int][]queue.Nudge, error) {
	d, now := c.p.o.DB, c.p.o.DB.Now()
	if err := order.Move(tx, w, d, c.changes); err != nil {
		return nil, err
	}
	var ids, withItems []int64
	var facts []notify.Fact
	var tags []int
	for i, ch := range c.changes {
		if ch.To != order.Closed {
			continue
		}
		ids = append(ids, ch.Order.ID)
		if ch.Order.HasItems {
			withItems = append(withItems, ch.Order.ID)
		}
		facts = append(facts, c.p.fact(ch.Order, ch.To, ch.Order.Version, now))
		tags = append(tags, c.tags[i])
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
	// Stock comes after the orders: it is what many orders share, and is locked
	// last and for the shortest time.
	if err := stock.Release(ctx, tx, d, withItems); err != nil {
		return nil, err
	}
	nudges := make(map[int][]queue.Nudge, len(made))
	for i, n := range made {
		nudges[tags[i]] = n
	}
	return nudges, nil
}
