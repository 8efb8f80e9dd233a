// Package payment is where the nouns meet: an order is created, confirmed,
// closed or failed here, with its stock, its money and its notification, in one
// transaction each. Callback, supplier query, compensation and approval all end in
// Confirm. What an import brings in was booked and notified elsewhere: it goes by
// order.InsertStaged.
package payment

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// ErrConflict says that the merchant used an out_trade_no again with other
// content (contract §4: 409 idempotency_conflict).
var ErrConflict = errors.New("out_trade_no was used for an order with other content")

// ErrSupplier says that the supplier's secrets cannot be read on this node: the
// fault is ours, and the same request will do once it is fixed.
var ErrSupplier = errors.New("the supplier cannot be used at the moment: try again")

// ErrState says that the order's status does not allow what was asked for.
var ErrState = errors.New("the order's status does not allow this")

// FieldError names the field of a request that is wrong and how to fix it.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Problem) }

// Options of a Processor.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Ledger   *ledger.Ledger
	Nudger   *notify.Nudger
	// Here is the dispatcher of this process, nil where it has none.
	Here *notify.Dispatcher
	// CheckURL says whether a notification may be sent to an address at all.
	CheckURL func(string) error

	Batch   int           // most items of one transaction
	Writers int           // transactions at a time
	Queue   int           // most items that wait
	Wait    time.Duration // longest wait of one item

	Expiry       time.Duration // of an order that names none
	ExpiryMax    time.Duration
	ClosingGrace time.Duration // how long closing waits where the supplier cannot be queried

	// Spare says whether one more raw record of a supplier's repeats is within the
	// budget; nil = none is kept.
	Spare func(supplierID int64) bool
	Log   *slog.Logger
}

// Processor is the only writer of orders.
type Processor struct {
	o        Options
	confirms *db.Batcher[*Message, Outcome]
	creates  *db.Batcher[*createItem, createResult]
	asks     *db.Batcher[*ask, answer]
	stuck    stuckOrders
	repeats  *repeats
}

// New starts the Processor's writers.
func New(o Options) *Processor {
	p := &Processor{o: o, repeats: newRepeats(o)}
	p.confirms = db.NewBatcher(o.DB, batchOptions(o, "confirm", (*Message).key, p.confirmed), p.Confirm)
	p.creates = db.NewBatcher(o.DB, batchOptions(o, "create", (*createItem).key, p.created), p.create)
	p.asks = db.NewBatcher(o.DB, batchOptions(o, "ask", (*ask).key, p.asked), p.ask)
	return p
}

func batchOptions[In, Out any](o Options, name string, key func(In) string, after func([]In, []Out)) db.BatchOptions[In, Out] {
	return db.BatchOptions[In, Out]{
		Size: o.Batch, Writers: o.Writers, Queue: o.Queue, Wait: o.Wait, Key: key,
		After: after, Observe: metric.ObserveBatch(name),
	}
}

// created asks for a look at the moments at which new orders run out.
func (p *Processor) created(_ []*createItem, results []createResult) {
	var moments []int64
	for _, r := range results {
		if r.created {
			moments = append(moments, r.order.ExpiresAt)
		}
	}
	p.o.Nudger.Expiring(moments)
}

// confirmed nudges what a committed batch of messages made due, as one task, and
// counts callbacks that came again.
func (p *Processor) confirmed(_ []*Message, outs []Outcome) {
	failpoint.Hit("after_commit")
	var nudges []queue.Nudge
	for _, out := range outs {
		if out.repeat != nil {
			p.repeats.note(out.CallbackID, out.repeat)
		}
		nudges = append(nudges, out.nudges...)
		switch out.Name {
		case Paid:
			metric.OrdersMoved.WithLabelValues(string(order.Paid)).Inc()
		case OrderFailed:
			metric.OrdersMoved.WithLabelValues(string(order.Failed)).Inc()
		case OrderClosed:
			metric.OrdersMoved.WithLabelValues(string(order.Closed)).Inc()
		case Repeat, Ignored, FailedTry:
		default:
			metric.Exceptions.WithLabelValues(out.Name).Inc()
		}
	}
	p.o.Nudger.Now(nudges)
}

// Close finishes what waits and ends the writers.
func (p *Processor) Close() {
	p.confirms.Close()
	p.creates.Close()
	p.asks.Close()
	p.repeats.close()
}

// Outcome is what became of a message. All of them are committed.
type Outcome struct {
	// Name is Paid, Repeat, Ignored, FailedTry, OrderFailed, OrderClosed, or the
	// exception's kind.
	Name string
	// CallbackID is the record of a callback, or of the first one where it came again;
	// 0 for any other source.
	CallbackID int64
	OrderNo    string // of the order found, else the reference as it came
	// Result is what the supplier is answered.
	Result supplier.Result

	nudges []queue.Nudge
	repeat *callbackRow // set where the same message was taken before
}

// Outcomes that are no exceptions.
const (
	Paid        = "paid"
	Repeat      = "repeat"       // the same fact again: nothing changed
	Ignored     = "ignored"      // says nothing that moves an order
	FailedTry   = "failed_try"   // a failure that the buyer may repeat, or of a closed order
	OrderFailed = "order_failed" // the last attempt failed for good
	OrderClosed = "order_closed" // the supplier closed the last attempt, and with it the order
)

// Outcomes are all of them.
var Outcomes = []string{Paid, Repeat, Ignored, FailedTry, OrderFailed, OrderClosed}
