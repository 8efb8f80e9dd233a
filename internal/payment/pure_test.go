package payment

import (
	"fmt"
	"slices"

	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Pure is one order with what is decided about it, all in memory: the decisions and their
// rows are those of the program, and storing them is the same compare-and-set without SQL.
type Pure struct {
	p  *Processor
	at supplier.Entry

	Order      *order.Order
	Attempts   []*Attempt // newest first
	History    []order.History
	Entries    []ledger.Entry
	Notices    []string
	Exceptions []*exception.Item

	// KeepsHeld is a control: exceptions go on naming what has left suspense.
	KeepsHeld bool

	trades map[tradeKey]int64
	booked map[tradeKey]bool
	held   map[string]*held
	known  map[eventKey]int64
	calls  int64
}

// NewPure is a new order.
func NewPure(p *Processor, s supplier.Entry, merchantID, amount, expiry int64, currency string) *Pure {
	now, id := p.o.DB.Now(), p.o.DB.NewID()
	o := &order.Order{
		ID: id, OrderNo: fmt.Sprint(id), MerchantID: merchantID, SupplierID: s.ID, Amount: amount, Currency: currency,
		Status: order.Pending, Version: 1,
		CreatedAt: now, ExpiresAt: now + expiry, NextAt: new(now + expiry),
	}
	return &Pure{
		p: p, at: s, Order: o, History: []order.History{{Version: 1, To: order.Pending}}, trades: map[tradeKey]int64{},
		booked: map[tradeKey]bool{},
		held:   map[string]*held{}, known: map[eventKey]int64{},
	}
}

// Now is the clock.
func (x *Pure) Now() int64 { return x.p.o.DB.Now() }

// Pass lets time pass: everything is that much older.
func (x *Pure) Pass(us int64) {
	x.Order.CreatedAt -= us
	x.Order.ExpiresAt -= us
	x.Order.NextAt = new(*x.Order.NextAt - us)
	for _, a := range x.Attempts {
		a.CreatedAt -= us
	}
}

func (x *Pure) moved(o *order.Order, to order.Status) {
	if o.Version != x.Order.Version || !order.Moves.Can(o.Status, to) {
		panic(fmt.Sprintf("the move of an order from %s to %s", o.Status, to))
	}
	x.History = append(x.History, order.History{Version: o.Version + 1, From: o.Status, To: to})
	if to == order.Closing {
		o.QueryTries = 0
	}
	o.Status, o.Version = to, o.Version+1
	x.Order = o
}

// Confirm takes one message.
func (x *Pure) Confirm(m *Message) Outcome {
	o := *x.Order
	b := &batch{
		p: x.p, items: []*Message{m}, orders: map[string]*order.Order{}, returned: map[tradeKey]*order.Order{},
		attempts: map[int64][]*Attempt{o.ID: x.Attempts}, trades: x.trades, booked: x.booked, held: x.held, known: x.known,
		holds: map[tradeKey]int64{}, reported: map[tradeKey]bool{}, about: map[tradeKey][]int64{}, ended: map[string][]int64{},
		byTrade: map[tradeKey]*order.Order{},
	}
	if ref := m.orderRef(); ref == o.OrderNo || slices.ContainsFunc(x.Attempts, func(a *Attempt) bool { return a.SupplierRef == ref }) {
		b.orders[ref] = &o
	}
	out := b.collect(0, m, b.decide(m))
	for _, a := range b.settled {
		x.upsert(a)
	}
	for _, c := range b.changes {
		x.moved(c.Order, c.To)
	}
	x.Entries = append(x.Entries, b.entries...)
	for _, f := range b.facts {
		x.Notices = append(x.Notices, f.Type)
	}
	x.Exceptions = append(x.Exceptions, b.exceptions...)
	for _, e := range x.Exceptions {
		if slices.Contains(b.freed, e.HeldRef) && !x.KeepsHeld {
			e.HeldRef = ""
		}
	}
	for _, r := range b.records {
		x.known[eventKey{x.at.AccountID, r.EventKey, r.Digest}] = r.ID
	}
	return out
}

func (x *Pure) upsert(a *Attempt) {
	i := slices.IndexFunc(x.Attempts, func(old *Attempt) bool { return old.AccountID == a.AccountID && old.SupplierRef == a.SupplierRef })
	if i < 0 {
		x.Attempts = slices.Insert(x.Attempts, 0, a)
	} else if old := x.Attempts[i]; Moves.Can(old.Status, a.Status) {
		old.Status, old.SupplierTradeNo = a.Status, a.SupplierTradeNo
	} else {
		return
	}
	if a.settled() {
		x.trades[tradeKey{a.AccountID, a.SupplierTradeNo}] = a.OrderID
	}
}

// Begin stores the attempt of a request to pay. end stores what came of its start; nil =
// nothing is to be started.
func (x *Pure) Begin() (ref string, end func(supplier.Started)) {
	if x.Order.Status != order.Pending && x.Order.Status != order.Paying {
		return "", nil
	}
	begun, err := x.p.pick(x.Order, x.Attempts, &PayRequest{})
	if err != nil {
		return "", nil
	}
	a := begun.attempt
	if !begun.again {
		x.Attempts = slices.Insert(x.Attempts, 0, a)
		o := *x.Order
		o.NextAt = new(x.p.firstQuery(&o, begun.entry))
		if o.Status == order.Pending {
			x.moved(&o, order.Paying)
		}
		o.QueryTries = 0
		x.Order = &o
	}
	if !begun.call {
		return "", nil
	}
	return a.SupplierRef, func(said supplier.Started) {
		to := AttemptUnknown
		switch {
		case said.State == supplier.Accepted:
			to = Submitted
		case said.State == supplier.StartRefused && !begun.again:
			to = AttemptFailed
		}
		if a.open() && a.Status != Submitted && Moves.Can(a.Status, to) {
			a.Status = to
		}
	}
}

// End closes the order, or moves it towards that.
func (x *Pure) End(by order.Cause) {
	if x.Order.Status != order.Pending && x.Order.Status != order.Paying || by == order.ByTimeout && x.Order.ExpiresAt > x.Now() {
		return
	}
	o := *x.Order
	c := closing{p: x.p, by: by}
	c.add(&o, x.Attempts, "clock")
	to := c.changes[0].To
	x.moved(&o, to)
	if to != order.Closed {
		return
	}
	for _, a := range x.Attempts {
		if a.open() {
			a.Status = AttemptClosed
		}
	}
	x.Notices = append(x.Notices, x.p.fact(x.Order, to, x.Order.Version, x.Now()).Type)
}

// Queried is a claim for a query, and says when the next one is.
func (x *Pure) Queried() {
	o := *x.Order
	o.QueryTries++
	next, _ := x.p.o.Steps.Next(&o, x.Now())
	o.NextAt = &next
	x.Order = &o
}

// CallID names a call.
func (x *Pure) CallID() int64 { x.calls++; return x.calls }

// IsOpen reports whether money may come of an attempt.
func (a *Attempt) IsOpen() bool { return a.open() }
