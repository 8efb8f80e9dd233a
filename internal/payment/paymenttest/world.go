package paymenttest

import (
	"slices"
	"time"

	"backstop/internal/supplier"
)

// Fault is what goes wrong with one call to a World.
type Fault string

// Faults.
const (
	NoFault Fault = ""
	Lost    Fault = "lost"    // it acts, and its answer is lost
	Deaf    Fault = "deaf"    // the call never arrives
	Late    Fault = "late"    // a start arrives later
	Refuses Fault = "refuses" // it definitely refuses a start
	Lies    Fault = "lies"    // it reports another amount
	Other   Fault = "other"   // it answers about another payment
	Hurry   Fault = "hurry"   // it is paid, and calls back, before it answers the start
)

// QueryAfter is how late a start may arrive at a World.
const QueryAfter = 2 * time.Minute

// World is the true state of the payments of one order at a supplier, by reference.
type World struct {
	Fault Fault // of the next calls

	paid   func(ref string) // called for a payment in a Hurry
	trades map[string]*trade
	refs   []string // in the order in which they first arrived or were sent
	now    time.Duration
	expiry time.Duration // of the order
}

// trade is one payment.
type trade struct {
	state  supplier.AnswerState // not_found until it begins
	sentAt time.Duration        // of the first start
	late   bool                 // a start is under way
	own    bool                 // the merchant started it: it ends with the order
}

// NewWorld returns the World of a new order.
func NewWorld(expiry time.Duration) *World {
	return &World{trades: map[string]*trade{}, expiry: expiry}
}

func (w *World) trade(ref string) *trade {
	x := w.trades[ref]
	if x == nil {
		x = &trade{state: supplier.AnswerNotFound, sentAt: w.now}
		w.trades[ref] = x
		w.refs = append(w.refs, ref)
	}
	return x
}

// in returns the references in these states.
func (w *World) in(states ...supplier.AnswerState) (refs []string) {
	for _, ref := range w.refs {
		if slices.Contains(states, w.trades[ref].state) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// under returns the references with a start under way.
func (w *World) under() (refs []string) {
	for _, ref := range w.refs {
		if w.trades[ref].late {
			refs = append(refs, ref)
		}
	}
	return refs
}

// begin lets a start arrive; a repeat changes nothing.
func (w *World) begin(ref string) {
	x := w.trade(ref)
	x.late = false
	if x.state == supplier.AnswerNotFound {
		x.state = supplier.AnswerPaying
	}
}

// pass lets time pass: what was under way has arrived or is lost, and what the merchant started
// ends with the order.
func (w *World) pass(d time.Duration) {
	w.now += d
	for _, x := range w.trades {
		if w.now-x.sentAt >= QueryAfter {
			x.late = false
		}
		if x.own && x.state == supplier.AnswerPaying && w.now >= w.expiry {
			x.state = supplier.AnswerClosed
		}
	}
}

func exchange() supplier.Exchange {
	return supplier.Exchange{Class: supplier.ClassOK, Status: 200, Request: []byte("GET /"), Body: []byte("{}")}
}

// Start begins a payment.
func (w *World) Start(ref string) supplier.Started {
	unknown := supplier.Started{State: supplier.StartUnknown, Exchange: exchange()}
	x := w.trade(ref)
	switch {
	case w.Fault == Deaf:
		return unknown
	case w.Fault == Late:
		x.late = w.now-x.sentAt < QueryAfter
		return unknown
	case w.Fault == Refuses && x.state == supplier.AnswerNotFound:
		return supplier.Started{State: supplier.StartRefused, Exchange: exchange()}
	case x.state != supplier.AnswerNotFound && x.state != supplier.AnswerPaying:
		return unknown
	}
	w.begin(ref)
	switch w.Fault {
	case Lost:
		return unknown
	case Hurry:
		x.state = supplier.AnswerPaid
		w.paid(ref)
	}
	return supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: "qr:" + ref, Exchange: exchange()}
}

// Query answers about a payment.
func (w *World) Query(ref string, amount int64) supplier.Answer {
	x := w.trade(ref)
	switch {
	case w.Fault == Lost || w.Fault == Deaf || x.state == supplier.AnswerNotFound && w.Fault != NoFault:
		return supplier.Answer{State: supplier.AnswerUnknown, Exchange: exchange()}
	case w.Fault == Lies:
		a := supplier.Answer{State: supplier.AnswerPaid, Says: word(ref, supplier.AnswerPaid, amount+1), Exchange: exchange()}
		a.Says.EventKey += ":lie"
		return a
	}
	a := supplier.Answer{State: x.state, Says: word(ref, x.state, amount), Exchange: exchange()}
	if w.Fault == Other {
		a.Says.OrderRef += "9"
	}
	return a
}

// Close closes a payment.
func (w *World) Close(ref string, amount int64) supplier.Answer {
	x := w.trade(ref)
	unknown := supplier.Answer{State: supplier.AnswerUnknown, Exchange: exchange()}
	if w.Fault == Deaf {
		return unknown
	}
	if x.state == supplier.AnswerPaying {
		x.state = supplier.AnswerClosed
	}
	if w.Fault == Lost || x.state != supplier.AnswerClosed && x.state != supplier.AnswerNotFound {
		return unknown
	}
	return supplier.Answer{State: x.state, Says: word(ref, x.state, amount), Exchange: exchange()}
}

// word is the supplier's report about a payment, in answers and callbacks.
func word(ref string, state supplier.AnswerState, amount int64) supplier.Callback {
	return supplier.Callback{
		EventKey: "trade:T-" + ref + ":" + string(state), OrderRef: ref, TradeNo: "T-" + ref, Status: supplier.Status(state),
		RawStatus: string(state),
		Amount:    amount, Currency: Currency, Final: true,
	}
}
