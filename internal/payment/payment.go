// Package payment creates, confirms, closes and fails orders, each with its stock, ledger
// entries and notification in one transaction. Callbacks, supplier queries, compensations and
// approvals all end in Confirm. Imported orders were booked and notified elsewhere;
// order.InsertStaged writes them.
package payment

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

var (
	// ErrConflict means that the merchant reused an out_trade_no with other content (contract
	// §4: 409 idempotency_conflict).
	ErrConflict = errors.New("out_trade_no was used for an order with other content: use a new one, or send what you sent the first time")
	// ErrSupplier means that the supplier's secrets cannot be read on this node. The fault is
	// ours, and the same request succeeds once it is fixed.
	ErrSupplier = errors.New("the supplier cannot be used at the moment: try again")
	// ErrState means that the order's status does not allow the request.
	ErrState = errors.New("the order's status does not allow this")
	// ErrAttemptOpen means that another supplier was requested while a payment may still be
	// made (contract §8: 409 attempt_open).
	ErrAttemptOpen = errors.New("a started payment may still be made: use its supplier, or wait until it has failed or is closed")
)

// Options of a Processor.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Ledger   *ledger.Ledger
	Nudger   *notify.Nudger
	// Local is the dispatcher of this process; nil = none.
	Local *notify.Dispatcher
	// CheckURL returns why notifications must not be sent to a URL.
	CheckURL func(string) error

	Batch   int           // maximum number of items in one transaction
	Writers int           // concurrent transactions
	Queue   int           // maximum number of waiting items
	Wait    time.Duration // longest wait of one item

	Expiry       time.Duration // default expiry of an order
	ExpiryMax    time.Duration
	ClosingGrace time.Duration // how long closing waits if the supplier cannot be queried

	// Refunds keeps and books what messages say about refunds; nil = none is known.
	Refunds Refunds
	// Disputes books what messages about disputes say; nil = they only open exceptions.
	Disputes Disputes
	// Payouts matches messages that name a payout's number; nil = none is known.
	Payouts Matcher
	// Requery adds to the writes that the supplier is queried about an order at once; nil = no
	// supplier can be.
	Requery func(w *db.Writes, o *order.Order, supplierID int64)
	// Calls makes the calls to suppliers; nil = none can be asked.
	Calls *suppliercall.Caller
	// CallTimeout bounds how long a merchant waits for the start of a payment.
	CallTimeout time.Duration
	// CallbackURL returns the callback URL of the supplier with this code.
	CallbackURL func(code string) string
	Keys        *seal.Keyring // seals what only the buyer may know
	Steps       Steps

	// Spare reports whether the budget allows one more raw record of a supplier's repeats; nil
	// = none are stored.
	Spare func(supplierID int64) bool
	Log   *slog.Logger
}

// Processor is the only writer of orders.
type Processor struct {
	o        Options
	confirms *db.Batcher[*Message, Outcome]
	creates  *db.Batcher[*createItem, createResult]
	requests *db.Batcher[*request, answer]
	due      dueReader
	repeats  *repeats
	queries  atomic.Pointer[func([]Moment)]
}

// QueryBy sets the function that takes due orders whose supplier can be queried. It must not
// block.
func (p *Processor) QueryBy(take func([]Moment)) { p.queries.Store(&take) }

// query passes orders on. Without QueryBy in this process, another process finds them.
func (p *Processor) query(due []Moment) {
	if take := p.queries.Load(); take != nil && len(due) > 0 {
		(*take)(due)
	}
}

// New starts the Processor's writers.
func New(o Options) *Processor {
	p := &Processor{o: o, repeats: newRepeats(o)}
	p.confirms = db.NewBatcher(o.DB, batchOptions(o, "confirm", (*Message).key, p.confirmed), p.Confirm)
	p.creates = db.NewBatcher(o.DB, batchOptions(o, "create", (*createItem).key, p.created), p.create)
	p.requests = db.NewBatcher(o.DB, batchOptions(o, "ask", (*request).key, p.answered), p.answer)
	return p
}

func batchOptions[In, Out any](o Options, name string, key func(In) string, after func([]In, []Out)) db.BatchOptions[In, Out] {
	return db.BatchOptions[In, Out]{
		Size: o.Batch, Writers: o.Writers, Queue: o.Queue, Wait: o.Wait, Key: key,
		After: after, Observe: metric.ObserveBatch(name),
	}
}

// created schedules the timeouts of new orders.
func (p *Processor) created(_ []*createItem, results []createResult) {
	var moments []int64
	for _, r := range results {
		if r.created {
			moments = append(moments, r.order.ExpiresAt)
		}
	}
	p.o.Nudger.Expiring(moments)
}

// Confirmed does what follows the commit of a Confirm in the caller's transaction.
func (p *Processor) Confirmed(items []*Message, outs []Outcome) { p.confirmed(items, outs) }

// confirmed nudges what a committed batch of messages made due, as one task, and counts
// repeated callbacks.
func (p *Processor) confirmed(_ []*Message, outs []Outcome) {
	failpoint.Hit("after_commit")
	var nudges []queue.Nudge
	for _, out := range outs {
		if out.repeat != nil {
			p.repeats.note(out.CallbackID, out.repeat)
		}
		nudges = append(nudges, out.nudges...)
		if to, moved := movedTo[out.Name]; moved {
			metric.OrdersMoved.WithLabelValues(string(to)).Inc()
		} else if !slices.Contains(Outcomes, out.Name) {
			metric.Exceptions.WithLabelValues(out.Name).Inc()
		}
	}
	p.o.Nudger.Now(nudges)
}

// Close finishes pending work and stops the writers.
func (p *Processor) Close() {
	p.confirms.Close()
	p.creates.Close()
	p.requests.Close()
	p.repeats.close()
}

// Outcome is the result of a message. All outcomes are committed.
type Outcome struct {
	// Name is Paid, Repeat, Ignored, FailedTry, OrderFailed, OrderClosed, or the
	// exception's kind.
	Name string
	// CallbackID is the record of a callback, or of the first one if it is a repeat; 0 for
	// other sources.
	CallbackID int64
	OrderNo    string // of the order found, else the reference in the message
	Result     supplier.Result

	nudges []queue.Nudge
	repeat *callbackRow // set if the same message was accepted before
}

// Moved reports whether the message changed its order's status.
func (o Outcome) Moved() bool { return movedTo[o.Name] != "" }

// Outcomes other than exceptions.
const (
	Paid        = "paid"
	Repeat      = "repeat"       // the same again: nothing changed
	Ignored     = "ignored"      // does not concern an order's status
	FailedTry   = "failed_try"   // a failure that the buyer may retry, or of a closed order
	OrderFailed = "order_failed" // the last attempt failed finally
	OrderClosed = "order_closed" // the supplier closed the last attempt, and with it the order
)

// Outcomes lists all outcomes except exceptions.
var Outcomes = []string{Paid, Repeat, Ignored, FailedTry, OrderFailed, OrderClosed}

// movedTo maps the outcomes that change the order's status to the new status.
var movedTo = map[string]order.Status{Paid: order.Paid, OrderFailed: order.Failed, OrderClosed: order.Closed}
