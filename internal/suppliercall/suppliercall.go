package suppliercall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
	"golang.org/x/time/rate"
)

// ErrDown means that the supplier's breaker is open and nothing was sent.
var ErrDown = errors.New("the supplier is unreachable at the moment: try again later")

// ErrShadow means that shadow mode makes no calls that move money.
var ErrShadow = errors.New("shadow mode: no supplier is called for payments, refunds or payouts")

// Op is the kind of a call, as in the contract's supplier-calls.
type Op string

// Ops.
const (
	Pay         Op = "pay"
	Query       Op = "query"
	Close       Op = "close"
	Refund      Op = "refund"
	RefundQuery Op = "refund_query"
	Payout      Op = "payout"
	PayoutQuery Op = "payout_query"
)

// movesMoney reports whether a call changes something at the supplier, other than a query.
func (o Op) movesMoney() bool { return o == Pay || o == Close || o == Refund || o == Payout }

// Ops are all of them.
var Ops = []Op{Pay, Query, Close, Refund, RefundQuery, Payout, PayoutQuery}

// States of a row.
const (
	begun = "begun" // may have been sent
	ended = "ended"
)

// NotMade is the status of a call that was recorded but not made: it got no turn in time, or
// the supplier's protocol cannot express it.
const NotMade = "not_made"

// maxKept bounds the stored part of a request and of an answer, in bytes.
const maxKept = 4 << 10

// Row is one call as stored.
type Row struct {
	bun.BaseModel `bun:"table:supplier_calls,alias:sc"`

	ID         int64          `bun:"id,pk"`
	SupplierID int64          `bun:"supplier_id"`
	OrderID    int64          `bun:"order_id"`
	Op         Op             `bun:"op"`
	Reference  string         `bun:"reference"`
	Key        string         `bun:"call_key"` // idempotency key; "" = none sent
	State      string         `bun:"state"`
	Class      supplier.Class `bun:"class"`
	Status     string         `bun:"status"` // a supplier.AnswerState or StartState, Refunded, or NotMade
	HTTPStatus int            `bun:"http_status"`
	Request    string         `bun:"request"`
	Answer     string         `bun:"answer"`
	StartedAt  int64          `bun:"started_at"`
	TookUS     *int64         `bun:"took_us"` // nil = it has not ended, or its end was lost
	Node       string         `bun:"node"`
}

// Refunded is the status of an answer that says that the payment was made, and that some of the
// money or all of it went back.
const Refunded = "refunded"

// StatusOf returns the status of an answer.
func StatusOf(a supplier.Answer) string {
	if a.Refunded() {
		return Refunded
	}
	return string(a.State)
}

// Call describes one call.
type Call struct {
	To        supplier.Entry
	Op        Op
	OrderID   int64
	OrderNo   string // not masked, because operators need it
	Reference string
	Key       string
	// Begun is its row, if Begin has written it; nil = Do writes it.
	Begun *Done
}

// Said is a supplier's answer.
type Said struct {
	Exchange supplier.Exchange
	Status   string // see Row
}

// Done is a call that was made but whose end is not stored yet; End stores it.
type Done struct {
	Row
	to         recipient.Recipient
	generation int64
}

// Options of a Caller.
type Options struct {
	DB       *db.DB
	Breakers *breaker.Cache // of suppliers
	InFlight int            // calls per supplier on this node
	Timeout  time.Duration  // of one call, for the lease of a probe
	// Mask hides personal data in a request or an answer, except the given values.
	Mask func(text []byte, keep ...string) []byte
	// Shadow refuses the calls that move money.
	Shadow bool
	Log    *slog.Logger
}

// Caller makes calls to suppliers.
type Caller struct {
	o      Options
	begins *db.Batcher[*Row, struct{}]
	ends   *db.Batcher[*Done, func()]

	mu    sync.Mutex
	lines map[int64]*line // by supplier
}

// line limits this node's calls to one supplier.
type line struct {
	slots chan struct{} // one per call in flight
	rate  *rate.Limiter
}

const (
	batchSize = 256
	maxWaits  = 4096             // rows waiting for their transaction
	rowWait   = 10 * time.Second // of one row
)

// New starts a Caller.
func New(o Options) *Caller {
	if o.Mask == nil {
		o.Mask = func(text []byte, _ ...string) []byte { return text }
	}
	c := &Caller{o: o, lines: map[int64]*line{}}
	c.begins = db.NewBatcher(o.DB, db.BatchOptions[*Row, struct{}]{
		Size: batchSize, Writers: 1, Queue: maxWaits, Wait: rowWait, Observe: metric.ObserveBatch("call"),
	}, c.begin)
	c.ends = db.NewBatcher(o.DB, db.BatchOptions[*Done, func()]{
		Size: batchSize, Writers: 1, Queue: maxWaits, Wait: rowWait, Observe: metric.ObserveBatch("answer"),
	}, c.end)
	return c
}

// Close writes pending rows.
func (c *Caller) Close() {
	c.begins.Close()
	c.ends.Close()
}

// Gate returns what a supplier's breaker currently allows.
func (c *Caller) Gate(supplierID int64) breaker.Gate {
	return c.o.Breakers.Gate(recipient.OfSupplier(supplierID))
}

// Down reports whether a call would be ErrDown.
func (c *Caller) Down(supplierID int64) bool {
	g := c.Gate(supplierID)
	return !g.Flow && !g.Due
}

// Shadow returns ErrShadow in shadow mode: what would move money must not be begun. A nil Caller makes no
// calls at all.
func (c *Caller) Shadow() error {
	if c != nil && c.o.Shadow {
		return ErrShadow
	}
	return nil
}

// Begin adds the rows of calls to the writes of the transaction that claims the work for them, so
// that both are one commit. After that commit each is either made, with Do, or dropped, with Drop.
func (c *Caller) Begin(w *db.Writes, calls ...Call) []*Done {
	begun, rows := make([]*Done, len(calls)), make([]Row, len(calls))
	for i, x := range calls {
		begun[i] = c.row(x)
		rows[i] = begun[i].Row
	}
	w.Insert(&rows, "")
	return begun
}

// row returns the row of a call that may be made now.
func (c *Caller) row(x Call) *Done {
	return &Done{to: recipient.OfSupplier(x.To.ID), Row: Row{
		ID: c.o.DB.NewID(), SupplierID: x.To.ID, OrderID: x.OrderID, Op: x.Op, Reference: x.Reference, Key: x.Key,
		State: begun, StartedAt: c.o.DB.Now(), Node: c.o.DB.NodeName(),
	}}
}

// Do makes one call: ask sends it, with a context derived from ctx. The row is committed before
// the call; End or Keep writes its end. No transaction may be open.
//
// Errors: ErrDown, ErrShadow, a *supplier.FieldError of ask, and those of the database and of ctx; in
// these cases nothing was sent. The result of a call that was sent is never an error.
func (c *Caller) Do(ctx context.Context, x Call, call func(context.Context) (Said, error)) (*Done, error) {
	d := x.Begun
	if err := c.refusal(x); err != nil {
		if d != nil {
			c.Drop(ctx, d)
		}
		return nil, err
	}
	if d == nil {
		d = c.row(x)
		if _, err := c.begins.Do(ctx, &d.Row); err != nil {
			return nil, fmt.Errorf("record a call: %w", err)
		}
	}
	release, err := c.turn(ctx, x.To, d)
	if err != nil {
		c.Drop(ctx, d)
		return nil, err
	}
	defer release()
	failpoint.Hit("before_call")
	start := time.Now()
	said, err := safely(ctx, call)
	took := time.Since(start)
	failpoint.Hit("after_call")
	if field := (*supplier.FieldError)(nil); errors.As(err, &field) {
		c.Drop(ctx, d)
		return nil, err
	}
	if err != nil { // adapters return no other errors, and may have sent something
		c.o.Log.Error("an adapter failed", "supplier", x.To.Code, "op", x.Op, "error", err)
		said = Said{Status: string(supplier.AnswerUnknown), Exchange: supplier.Exchange{Class: supplier.ClassBadAnswer}}
	}
	c.note(d, x, said, took)
	return d, nil
}

// refusal returns why a call is not made; nil = it is.
func (c *Caller) refusal(x Call) error {
	switch {
	case x.Op.movesMoney() && c.o.Shadow:
		return ErrShadow
	case c.Down(x.To.ID):
		return ErrDown
	}
	return nil
}

// safely calls an adapter: a panic in it must not end the process.
func safely(ctx context.Context, call func(context.Context) (Said, error)) (said Said, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the adapter panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return call(ctx)
}

// turn waits until the supplier may be called: for a slot, for its rate and, after an outage,
// for the probe.
func (c *Caller) turn(ctx context.Context, to supplier.Entry, d *Done) (release func(), err error) {
	l := c.line(to)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-l.slots }
	if err = l.rate.Wait(ctx); err == nil {
		err = c.pass(ctx, d)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// pass checks the breaker, which may have opened while the call waited.
func (c *Caller) pass(ctx context.Context, d *Done) error {
	g := c.o.Breakers.Gate(d.to)
	if g.Due {
		mine, err := c.o.Breakers.LeaseProbe(ctx, d.to, c.o.Timeout)
		if err != nil {
			return err
		}
		if !mine {
			return ErrDown
		}
		d.generation = c.o.Breakers.Gate(d.to).Generation
		return nil
	}
	if !g.Flow {
		return ErrDown
	}
	d.generation = g.Generation
	return nil
}

// line returns a supplier's line, with this node's current share of the rate.
func (c *Caller) line(to supplier.Entry) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	// No burst: a second's worth at once would be twice the rate in that second.
	share := rate.Limit(float64(max(to.QueryRate, 1)) / float64(c.o.DB.Senders()))
	l := c.lines[to.ID]
	if l == nil {
		l = &line{make(chan struct{}, max(c.o.InFlight, 1)), rate.NewLimiter(share, 1)}
		c.lines[to.ID] = l
	}
	if l.rate.Limit() != share {
		l.rate.SetLimit(share)
	}
	return l
}
