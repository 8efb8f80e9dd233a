// Package report maintains the figures that operators watch: results of attempts and callbacks
// by the minute, the number of orders of which merchants have been notified, and the money of
// which they have not been notified yet. The transactions that write the facts write the
// figures too, so that a crash cannot separate them; pages read sums and never scan.
//
// A transaction writes one Delta, and Fold adds deltas up every second: if every order updated
// the same row, all orders would wait for each other.
package report

import (
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Result is the result of an attempt.
type Result int

// Results of an attempt: acknowledged by the merchant, to be retried, or finally failed.
const (
	OK Result = iota
	Retried
	Failed
)

// Delta is what one transaction adds to the figures. Only Fold reads its row, within seconds.
type Delta struct {
	Minute         int64 // Unix µs, start of the minute
	Attempts       []attempts
	Callbacks      []callbackSum
	UnnotifiedSums []unnotifiedSum
	Orders         []ordersSum
	Failures       []failureSum
	Volumes        []volumeSum
	Refusals       []callbackSum
	Calls          []callsSum
	// Unstored means that no rows of its orders are stored: RecountOrders leaves them out.
	Unstored bool

	now int64 // Unix µs
}

func (x *Delta) values() []any { return []any{&x.Minute, &x.Unstored} }

type attempts struct {
	Recipient int64
	Point
	OKAt, FailedAt int64 // of the last attempt that the merchant acknowledged, and of the last failed one, Unix µs
}

func (a *attempts) values() []any {
	return []any{&a.Recipient, &a.OK, &a.Retried, &a.Failed, &a.TookUS, &a.Took, &a.Lag, &a.OKAt, &a.FailedAt}
}

type callbackSum struct {
	Supplier int64
	Outcome  string
	N        int64
}

func (c *callbackSum) values() []any { return []any{&c.Supplier, &c.Outcome, &c.N} }

type unnotifiedSum struct {
	Merchant       int64
	Currency       string
	Orders, Amount int64
}

func (u *unnotifiedSum) values() []any { return []any{&u.Merchant, &u.Currency, &u.Orders, &u.Amount} }

// ordersSum counts the orders whose notifications were created in one minute.
type ordersSum struct {
	Minute                   int64 // 0 = the delta's own
	Currency                 string
	Raised, RaisedAmount     int64
	Notified, NotifiedAmount int64
	Waits                    Histogram // how long after the notification was created the orders were notified
}

func (o *ordersSum) values() []any {
	return []any{&o.Minute, &o.Currency, &o.Raised, &o.RaisedAmount, &o.Notified, &o.NotifiedAmount, &o.Waits}
}

// failureSum counts the failed attempts of one cause.
type failureSum struct {
	Class, Currency string
	Attempts        int64
	Orders, Amount  int64 // whose first attempt this was
}

func (f *failureSum) values() []any {
	return []any{&f.Class, &f.Currency, &f.Attempts, &f.Orders, &f.Amount}
}

// volumeSum counts the orders created in one quarter of an hour.
type volumeSum struct {
	Quarter                int64 // start of the quarter of an hour, Unix µs
	Merchant, Supplier     int64
	Currency               string
	Created, CreatedAmount int64
	Paid, PaidAmount       int64
}

func (v *volumeSum) values() []any {
	return []any{&v.Quarter, &v.Merchant, &v.Supplier, &v.Currency, &v.Created, &v.CreatedAmount, &v.Paid, &v.PaidAmount}
}

// NewDelta returns an empty delta for the minute that contains now (Unix µs).
func NewDelta(now int64) *Delta { return &Delta{Minute: floor(now, time.Minute), now: now} }

// floor returns the start of the span that contains a time.
func floor(us int64, span time.Duration) int64 { return us - us%span.Microseconds() }

// Attempt counts one attempt and how long the recipient took.
func (x *Delta) Attempt(recipient int64, r Result, took time.Duration) {
	a := x.of(recipient)
	*[...]*int64{&a.OK, &a.Retried, &a.Failed}[r]++
	a.TookUS += took.Microseconds()
	a.Took.Add(took)
	if r == OK {
		a.OKAt = x.now
	} else {
		a.FailedAt = x.now
	}
}

// Lag counts how long after the fact a recipient's first attempt began.
func (x *Delta) Lag(recipient int64, lag time.Duration) { x.of(recipient).Lag.Add(lag) }

// of finds a recipient's sums.
func (x *Delta) of(recipient int64) *attempts {
	return entry(&x.Attempts, attempts{Recipient: recipient}, func(a *attempts) bool { return a.Recipient == recipient })
}

// entry returns the entry of a short list that satisfies same, or else adds fresh.
func entry[T any](list *[]T, fresh T, same func(*T) bool) *T {
	for i := range *list {
		if same(&(*list)[i]) {
			return &(*list)[i]
		}
	}
	*list = append(*list, fresh)
	return &(*list)[len(*list)-1]
}

// Callback counts n authentic callbacks of one outcome.
func (x *Delta) Callback(supplier int64, outcome string, n int64) {
	sum := callbackSum{Supplier: supplier, Outcome: outcome}
	entry(&x.Callbacks, sum, func(c *callbackSum) bool { return c.Supplier == supplier && c.Outcome == outcome }).N += n
}

// Unnotified adds paid orders of which the merchant must still be notified; negative orders and
// amounts subtract. It must accompany every change of a delivery's next_at from or to NULL; a
// delivery without a currency involves no money.
func (x *Delta) Unnotified(merchant int64, currency string, orders, amount int64) {
	if currency == "" {
		return
	}
	sum := unnotifiedSum{Merchant: merchant, Currency: currency}
	u := entry(&x.UnnotifiedSums, sum, func(u *unnotifiedSum) bool { return u.Merchant == merchant && u.Currency == currency })
	u.Orders += orders
	u.Amount += amount
}

// Raised counts an order of which the merchant must be notified. at is when the notification
// was created (Unix µs).
func (x *Delta) Raised(at int64, currency string, amount int64) {
	o := x.ordersOf(at, currency)
	o.Raised++
	o.RaisedAmount += amount
}

// Unraised undoes Raised: the merchant need not be notified after all.
func (x *Delta) Unraised(at int64, currency string, amount int64) {
	o := x.ordersOf(at, currency)
	o.Raised--
	o.RaisedAmount -= amount
}

// Notified counts an order of which the merchant has been notified, once per Raised and with
// the same time.
func (x *Delta) Notified(at int64, currency string, amount int64) {
	o := x.ordersOf(at, currency)
	o.Notified++
	o.NotifiedAmount += amount
	o.Waits.Add(time.Duration(x.now-at) * time.Microsecond)
}

// Failure counts a failed attempt by its cause. The money counts with the first attempt only; a
// delivery without a currency involves no money.
func (x *Delta) Failure(class, currency string, amount int64, first bool) {
	sum := failureSum{Class: class, Currency: currency}
	f := entry(&x.Failures, sum, func(f *failureSum) bool { return f.Class == class && f.Currency == currency })
	if f.Attempts++; first && currency != "" {
		f.Orders++
		f.Amount += amount
	}
}

// Created counts an order, by the time of its creation (Unix µs).
func (x *Delta) Created(at, merchant, supplier int64, currency string, amount int64) {
	v := x.volumeOf(at, merchant, supplier, currency)
	v.Created++
	v.CreatedAmount += amount
}

// Paid counts an order as paid, once per Created and with the same time.
func (x *Delta) Paid(at, merchant, supplier int64, currency string, amount int64) {
	v := x.volumeOf(at, merchant, supplier, currency)
	v.Paid++
	v.PaidAmount += amount
}

// volumeQuarter is the precision of volume within a delta: days begin at a quarter of an hour in
// every time zone.
const volumeQuarter = 15 * time.Minute

func (x *Delta) volumeOf(at, merchant, supplier int64, currency string) *volumeSum {
	sum := volumeSum{Quarter: floor(at, volumeQuarter), Merchant: merchant, Supplier: supplier, Currency: currency}
	return entry(&x.Volumes, sum, func(v *volumeSum) bool {
		return v.Quarter == sum.Quarter && v.Merchant == merchant && v.Supplier == supplier && v.Currency == currency
	})
}

func (x *Delta) ordersOf(at int64, currency string) *ordersSum {
	minute := floor(at, time.Minute)
	if minute == x.Minute {
		minute = 0
	}
	sum := ordersSum{Minute: minute, Currency: currency}
	return entry(&x.Orders, sum, func(o *ordersSum) bool { return o.Minute == minute && o.Currency == currency })
}

// Times makes each order of the delta count n times.
func (x *Delta) Times(n int64) {
	for i := range x.Attempts {
		a := &x.Attempts[i]
		a.OK, a.Retried, a.Failed, a.TookUS = a.OK*n, a.Retried*n, a.Failed*n, a.TookUS*n
		a.Took.times(n)
		a.Lag.times(n)
	}
	for i := range x.Callbacks {
		x.Callbacks[i].N *= n
	}
	for i := range x.UnnotifiedSums {
		u := &x.UnnotifiedSums[i]
		u.Orders, u.Amount = u.Orders*n, u.Amount*n
	}
	for i := range x.Orders {
		o := &x.Orders[i]
		o.Raised, o.RaisedAmount, o.Notified, o.NotifiedAmount = o.Raised*n, o.RaisedAmount*n, o.Notified*n, o.NotifiedAmount*n
		o.Waits.times(n)
	}
	for i := range x.Failures {
		f := &x.Failures[i]
		f.Attempts, f.Orders, f.Amount = f.Attempts*n, f.Orders*n, f.Amount*n
	}
	for i := range x.Volumes {
		v := &x.Volumes[i]
		v.Created, v.CreatedAmount, v.Paid, v.PaidAmount = v.Created*n, v.CreatedAmount*n, v.Paid*n, v.PaidAmount*n
	}
	for i := range x.Refusals {
		x.Refusals[i].N *= n
	}
	for i := range x.Calls {
		x.Calls[i].Took.times(n)
	}
}

type deltaRow struct {
	bun.BaseModel `bun:"table:report_deltas"`

	ID   int64  `bun:"id,pk"`
	Body string `bun:"body"`
}

// Write adds the delta to the writes of the facts: one short row, whatever the transaction's
// size; none if the delta is empty.
func (x *Delta) Write(w *db.Writes, d *db.DB) {
	if len(x.Attempts)+len(x.Callbacks)+len(x.UnnotifiedSums)+len(x.Orders)+len(x.Failures)+len(x.Volumes)+len(x.Refusals)+
		len(x.Calls) == 0 {
		return
	}
	w.Insert(&[]deltaRow{{ID: d.NewID(), Body: x.text()}}, "")
}
