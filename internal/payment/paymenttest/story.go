package paymenttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"pgregory.net/rapid"
)

// Machine is a program with one order at one supplier.
type Machine interface {
	Pay()                           // the merchant's request
	Take(supplier.Callback)         // a callback
	Query()                         // one turn of the worker: it queries, and closes; the result is kept
	Kept() int                      // how many results are kept
	Land(n int) (c supplier.Answer) // writes the n-th kept result
	Crash()                         // loses all kept results
	Cancel()
	Expire() // makes the order due
	Pass(time.Duration)
	Books() Books
}

// Books are what a Machine has stored about its order.
type Books struct {
	Order    *order.Order
	Attempts []*payment.Attempt
	History  []order.History
	Entries  []ledger.Entry
	Notices  []string // types of events
	Held     []Held   // exceptions
}

// Held is one exception. Ref names the entry that holds its money in suspense.
type Held struct{ Kind, TradeNo, Ref string }

// storySteps is the maximum number of steps of one story.
const storySteps = 60

type story struct {
	t     *rapid.T
	w     *World
	m     Machine
	did   map[string]int
	told  map[string]bool // payments that were reported to the program and that it confirmed as written
	books Books
	last  []string // steps
}

// words of a story.
const (
	stepPay, stepOwn, stepArrive, stepBuyer, stepFail, stepDie = "pay", "own start", "late arrival", "buyer pays", "supplier fails",
		"supplier closes"
	stepCallback, stepLie, stepQuery, stepLand, stepCrash, stepClose = "callback", "lying callback", "ask", "land", "crash", "cancel"
	stepExpire, stepPass                                             = "expire", "pass"
)

func (s *story) run() (n int) {
	s.told = map[string]bool{}
	s.books = s.m.Books()
	s.w.paid = s.callback
	n = rapid.IntRange(1, storySteps).Draw(s.t, "steps")
	for range n {
		step := rapid.SampledFrom(s.possible()).Draw(s.t, "step")
		s.did[step]++
		s.last = append(s.last, step)
		s.do(step)
		s.check()
	}
	s.end()
	return n
}

// possible returns the steps that are possible now. Those of the program are more frequent.
func (s *story) possible() []string {
	o := s.books.Order
	all := []string{stepPay, stepQuery, stepPass, stepPass}
	switch o.Status {
	case order.Pending:
		all = append(all, stepPay, stepPay, stepClose, stepExpire)
	case order.Paying:
		all = append(all, stepPay, stepPay, stepQuery, stepQuery, stepQuery, stepClose, stepExpire)
	case order.Closing:
		all = append(all, stepQuery, stepQuery, stepQuery, stepClose, stepExpire)
	}
	if o.Status == order.Pending && len(s.books.Attempts) == 0 && s.w.now < QueryAfter {
		all = append(all, stepOwn)
	}
	if len(s.w.under()) > 0 {
		all = append(all, stepArrive, stepArrive)
	}
	if len(s.w.in(supplier.AnswerPaying)) > 0 {
		all = append(all, stepBuyer, stepBuyer, stepFail, stepDie)
	}
	if len(s.ended()) > 0 {
		all = append(all, stepCallback, stepCallback, stepLie)
	}
	if s.m.Kept() > 0 {
		all = append(all, stepLand, stepLand, stepLand, stepCrash)
	}
	return all
}

func (s *story) ended() []string {
	return s.w.in(supplier.AnswerPaid, supplier.AnswerFailed, supplier.AnswerClosed)
}

func (s *story) pick(refs []string) string { return rapid.SampledFrom(refs).Draw(s.t, "reference") }

// fault picks one of the given faults, or none.
func (s *story) fault(of ...Fault) {
	s.w.Fault = rapid.SampledFrom(append(of, NoFault, NoFault)).Draw(s.t, "fault")
	if s.w.Fault != NoFault {
		s.last = append(s.last, "("+string(s.w.Fault)+")")
	}
}

func (s *story) do(step string) {
	w, amount := s.w, s.books.Order.Amount
	switch step {
	case stepPay:
		s.fault(Lost, Deaf, Late, Refuses, Hurry)
		s.m.Pay()
	case stepOwn:
		w.trade(s.books.Order.OrderNo).own = true
		w.begin(s.books.Order.OrderNo)
	case stepArrive:
		w.begin(s.pick(w.under()))
	case stepBuyer:
		w.trades[s.pick(w.in(supplier.AnswerPaying))].state = supplier.AnswerPaid
	case stepFail:
		w.trades[s.pick(w.in(supplier.AnswerPaying))].state = supplier.AnswerFailed
	case stepDie:
		w.trades[s.pick(w.in(supplier.AnswerPaying))].state = supplier.AnswerClosed
	case stepCallback:
		s.callback(s.pick(s.ended()))
	case stepLie:
		c := word(s.pick(s.ended()), supplier.AnswerPaid, amount+1)
		c.EventKey += ":lie"
		s.m.Take(c)
	case stepQuery:
		s.fault(Lost, Deaf, Lies, Other)
		s.m.Query()
	case stepLand:
		s.land(rapid.IntRange(0, s.m.Kept()-1).Draw(s.t, "result"))
	case stepCrash:
		s.m.Crash()
	case stepClose:
		s.m.Cancel()
	case stepExpire:
		s.pass(max(w.expiry-w.now, time.Second))
		s.m.Expire()
	case stepPass:
		s.pass(rapid.SampledFrom([]time.Duration{
			time.Second, 31 * time.Second, 2 * time.Minute, 16 * time.Minute,
			25 * time.Hour,
		}).Draw(s.t, "time"))
	}
	w.Fault = NoFault
}

// callback reports the true state of a payment.
func (s *story) callback(ref string) {
	state := s.w.trades[ref].state
	s.m.Take(word(ref, state, s.books.Order.Amount))
	s.told[ref] = s.told[ref] || state == supplier.AnswerPaid
}

func (s *story) pass(d time.Duration) {
	s.w.pass(d)
	s.m.Pass(d)
}

func (s *story) land(n int) {
	a := s.m.Land(n)
	if ref := a.Says.OrderRef; a.State == supplier.AnswerPaid && s.w.trades[ref] != nil && a.Says.Amount == s.books.Order.Amount {
		s.told[ref] = true
	}
}

// end loses all callbacks and lets the supplier answer truthfully until the order has ended.
func (s *story) end() {
	s.last = append(s.last, "end")
	for range 6 {
		if !s.books.Order.Status.Open() {
			break
		}
		s.pass(25 * time.Hour)
		s.m.Expire()
		s.check()
		s.m.Query()
		for s.m.Kept() > 0 {
			s.land(0)
			s.check()
		}
	}
	if s.books.Order.Status.Open() {
		s.fail("the order never ends: it is %s", s.books.Order.Status)
	}
	for _, ref := range s.w.in(supplier.AnswerPaid) {
		if !s.known(ref) {
			s.fail("the supplier has money of %s: the order is %s, and nobody is notified", ref, s.books.Order.Status)
		}
	}
}

func (s *story) fail(format string, args ...any) {
	panic(Violation(fmt.Sprintf(format, args...) + fmt.Sprintf("; after %q", s.last)))
}

// known reports whether the order is paid by a payment, or an exception exists for it.
func (s *story) known(ref string) bool {
	o := s.books.Order
	return o.Status == order.Paid && o.SupplierTradeNo == "T-"+ref ||
		slices.ContainsFunc(s.books.Held, func(h Held) bool {
			return h.TradeNo == "T-"+ref && (h.Kind == exception.DuplicatePayment || h.Kind == exception.LatePayment)
		})
}

// check verifies the invariants after each step.
func (s *story) check() {
	before := s.books
	s.books = s.m.Books()
	b, o := s.books, s.books.Order
	s.checkHistory(before)
	paid, truly := 0, s.w.in(supplier.AnswerPaid)
	if o.Status == order.Paid {
		paid = 1
		if !slices.Contains(truly, o.SupplierTradeNo[min(2, len(o.SupplierTradeNo)):]) || o.PaidAmount != o.Amount {
			s.fail("the order is paid by %q with %d, and the supplier has %q", o.SupplierTradeNo, o.PaidAmount, truly)
		}
	}
	s.checkEntries()
	settling := 0
	for _, a := range b.Attempts {
		if a.Status == payment.Succeeded {
			settling++
		}
	}
	if settling != paid {
		s.fail("%d attempts settle an order that is %s", settling, o.Status)
	}
	var notices []string
	if !o.Status.Open() {
		notices = []string{"order." + string(o.Status)}
	}
	if !slices.Equal(b.Notices, notices) {
		s.fail("the merchant is told %q of an order that is %s", b.Notices, o.Status)
	}
	if len(truly) > 1 {
		s.fail("the buyer paid twice: %q", truly)
	}
	if (o.Status == order.Closed || o.Status == order.Failed) && len(truly) > 0 {
		s.fail("the order is %s and the supplier has money: %q", o.Status, truly)
	}
	if o.Status.Open() && o.NextAt == nil {
		s.fail("nothing will happen to an order that is %s", o.Status)
	}
	for ref, told := range s.told {
		if told && !s.known(ref) {
			s.fail("the program was told of the payment %s: the order is %s", ref, o.Status)
		}
	}
}

// checkEntries: a paid order is booked once, each reported payment is booked once, and the
// money in suspense is what open exceptions name.
func (s *story) checkEntries() {
	b, o := s.books, s.books.Order
	suspense, held := int64(0), map[string]int64{}
	var booked []int64
	for _, e := range b.Entries {
		if ledger.OfSuspense(e.Credit) != "" {
			suspense += e.Amount
		}
		if ledger.OfSuspense(e.Debit) != "" {
			suspense -= e.Amount
		}
		if e.Ref == payment.LedgerRefs(o.ID)[0] {
			booked = append(booked, e.Amount)
		}
		if strings.HasPrefix(e.Ref, "held:") {
			held[e.Ref] = e.Amount
		}
	}
	if paid := o.Status == order.Paid; paid != (len(booked) == 1) || paid && booked[0] != o.Amount || len(booked) > 1 {
		s.fail("the ledger has %v of an order that is %s", booked, o.Status)
	}
	named, trades := int64(0), map[string]bool{}
	for _, h := range b.Held {
		if h.Ref != "" {
			named += held[h.Ref]
			held[h.Ref] = 0 // one entry counts once
			trades[h.TradeNo] = true
		}
	}
	if suspense != named {
		s.fail("suspense has %d, and the exceptions name %d: %+v", suspense, named, b.Entries)
	}
	for ref := range s.told {
		if settles := o.Status == order.Paid && o.SupplierTradeNo == "T-"+ref; s.told[ref] && settles == trades["T-"+ref] {
			s.fail("the payment %s pays the order: %t, and is in suspense: %t", ref, settles, trades["T-"+ref])
		}
	}
}

// checkHistory: each version has one row, each row is legal, and a paid order stays paid.
func (s *story) checkHistory(before Books) {
	o := s.books.Order
	at := order.Pending
	for i, h := range s.books.History {
		if h.Version != int64(i+1) || i > 0 && (h.From != at || !order.Moves.Can(h.From, h.To)) {
			s.fail("history %+v", s.books.History)
		}
		at = h.To
	}
	if at != o.Status || int64(len(s.books.History)) != o.Version {
		s.fail("the order is %s in version %d, and its history ends with %s in %d", o.Status, o.Version, at, len(s.books.History))
	}
	if was := before.Order; was.Status == order.Paid && (o.Status != order.Paid || o.Version != was.Version ||
		o.PaidAmount != was.PaidAmount || o.SupplierTradeNo != was.SupplierTradeNo) {
		s.fail("an order that was paid has changed: %+v, and was %+v", o, was)
	}
}
