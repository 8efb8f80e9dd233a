// Package report maintains the figures that operators watch: results of attempts and callbacks
// by the minute, the number of orders of which merchants have been notified, and the money of
// which they have not been notified yet. The transactions that write the facts write the
// figures too, so that a crash cannot separate them; pages read sums and never scan.
//
// A transaction writes one Delta, and Fold adds deltas up every second: if every order updated
// the same row, all orders would wait for each other.
package report

import (
	"encoding/json"
	"fmt"
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

// Delta is what one transaction adds to the figures. Only Fold reads its row, within seconds;
// the short names keep it small.
type Delta struct {
	Minute         int64           `json:"m"` // Unix µs, start of the minute
	Attempts       []attempts      `json:"a,omitempty"`
	Callbacks      []callbackSum   `json:"c,omitempty"`
	UnnotifiedSums []unnotifiedSum `json:"u,omitempty"`
	Orders         []ordersSum     `json:"n,omitempty"`
	Failures       []failureSum    `json:"e,omitempty"`
	Volumes        []volumeSum     `json:"v,omitempty"`
	Refusals       []callbackSum   `json:"x,omitempty"`
	Calls          []callsSum      `json:"k,omitempty"`
	// Unstored means that no rows of its orders are stored: RecountOrders leaves them out.
	Unstored bool `json:"unstored,omitempty"`

	now int64 // Unix µs
}

type attempts struct {
	Recipient int64    `json:"i"`
	Results   [3]int64 `json:"r"` // by Result
	TookUS    int64    `json:"t"`
	Took      string   `json:"h"` // a Histogram as text
	TookLong  string   `json:"hl,omitempty"`
	Lag       string   `json:"l,omitempty"`
	LagLong   string   `json:"ll,omitempty"`
	OKAt      int64    `json:"s,omitempty"` // of the last attempt that the merchant acknowledged, Unix µs
	FailedAt  int64    `json:"f,omitempty"` // of the last failed attempt

	took, lag Histogram
}

// row converts the attempts to a row.
func (a *attempts) row() row {
	return row{
		OK: a.Results[OK], Retried: a.Results[Retried], Failed: a.Results[Failed], TookUS: a.TookUS,
		Took: a.Took, TookLong: a.TookLong, Lag: a.Lag, LagLong: a.LagLong,
	}
}

type callbackSum struct {
	Supplier int64  `json:"i"`
	Outcome  string `json:"o"`
	N        int64  `json:"n"`
}

type unnotifiedSum struct {
	Merchant int64  `json:"i"`
	Currency string `json:"c"`
	Orders   int64  `json:"n"`
	Amount   int64  `json:"a"`
}

// ordersSum counts the orders whose notifications were created in one minute.
type ordersSum struct {
	Minute         int64  `json:"m,omitempty"` // 0 = the delta's own
	Currency       string `json:"c"`
	Raised         int64  `json:"r,omitempty"`
	RaisedAmount   int64  `json:"a,omitempty"`
	Notified       int64  `json:"d,omitempty"`
	NotifiedAmount int64  `json:"b,omitempty"`
	// Waits says how long after the notification was created the orders were notified; a
	// Histogram as text.
	Waits     string `json:"h,omitempty"`
	WaitsLong string `json:"hl,omitempty"`

	waits Histogram
}

// failureSum counts the failed attempts of one cause.
type failureSum struct {
	Class    string `json:"k"`
	Currency string `json:"c"`
	Attempts int64  `json:"n"`
	Orders   int64  `json:"r,omitempty"` // whose first attempt this was
	Amount   int64  `json:"a,omitempty"`
}

// volumeSum counts the orders created in one quarter of an hour.
type volumeSum struct {
	Quarter       int64  `json:"m"` // start of the quarter of an hour, Unix µs
	Merchant      int64  `json:"i"`
	Supplier      int64  `json:"s"`
	Currency      string `json:"c"`
	Created       int64  `json:"n,omitempty"`
	CreatedAmount int64  `json:"a,omitempty"`
	Paid          int64  `json:"d,omitempty"`
	PaidAmount    int64  `json:"b,omitempty"`
}

// NewDelta returns an empty delta for the minute that contains now (Unix µs).
func NewDelta(now int64) *Delta { return &Delta{Minute: floor(now, time.Minute), now: now} }

// floor returns the start of the span that contains a time.
func floor(us int64, span time.Duration) int64 { return us - us%span.Microseconds() }

// Attempt counts one attempt and how long the recipient took.
func (x *Delta) Attempt(recipient int64, r Result, took time.Duration) {
	a := x.of(recipient)
	a.Results[r]++
	a.TookUS += took.Microseconds()
	a.took.Add(took)
	if r == OK {
		a.OKAt = x.now
	} else {
		a.FailedAt = x.now
	}
}

// Lag counts how long after the fact a recipient's first attempt began.
func (x *Delta) Lag(recipient int64, lag time.Duration) { x.of(recipient).lag.Add(lag) }

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
	o.waits.Add(time.Duration(x.now-at) * time.Microsecond)
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
		for r := range a.Results {
			a.Results[r] *= n
		}
		a.TookUS *= n
		a.took.times(n)
		a.lag.times(n)
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
		o.waits.times(n)
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
		x.Calls[i].took.times(n)
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

// text returns the delta in stored form.
func (x *Delta) text() string {
	for i := range x.Attempts {
		a := &x.Attempts[i]
		a.Took, a.TookLong = text(a.took.n[:]), text(a.took.long[:])
		a.Lag, a.LagLong = text(a.lag.n[:]), text(a.lag.long[:])
	}
	for i := range x.Orders {
		o := &x.Orders[i]
		o.Waits, o.WaitsLong = text(o.waits.n[:]), text(o.waits.long[:])
	}
	for i := range x.Calls {
		c := &x.Calls[i]
		c.Took, c.TookLong = text(c.took.n[:]), text(c.took.long[:])
	}
	body, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("report: a delta of numbers and names cannot be written: %v", err))
	}
	return string(body)
}
