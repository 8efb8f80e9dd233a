package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

const (
	// expireBatch is how many due orders one transaction closes; callbacks wait for it, some
	// milliseconds.
	expireBatch = 500
	// passEvery is how often everything from the watermark on is read.
	passEvery = time.Minute
	// readMargin is how far reads overlap: an order may be committed after the time at which it
	// is due.
	readMargin = 2 * time.Second
	// watermarkMargin is longer than any transaction, including a request's wait for one.
	watermarkMargin = 2 * time.Minute
)

// dueReader records how far this process has read the due orders. A new process begins at the
// watermark.
type dueReader struct {
	mu       sync.Mutex
	read     int64 // nothing before it is due; Unix µs
	passedAt int64 // when everything from the watermark on was last read
}

// from returns where to start reading. Every passEvery it is the watermark, which finds orders
// that were committed later than readMargin allows for, or imported.
func (r *dueReader) from(ctx context.Context, d *db.DB) (from int64, pass bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Now()-r.passedAt < passEvery.Microseconds() {
		return r.read, false, nil
	}
	from, err = order.Watermark(ctx, d.Read)
	return from, err == nil, err
}

// done records that nothing before the time to is left except what waits for suppliers, from
// waits on. After a full pass it advances the watermark.
func (r *dueReader) done(ctx context.Context, d *db.DB, from, to, waits int64, pass bool) error {
	now := d.Now()
	r.mu.Lock()
	r.read = min(to, now-readMargin.Microseconds())
	if pass {
		r.passedAt = now
	}
	r.mu.Unlock()
	if to = min(to, waits, now-watermarkMargin.Microseconds()); !pass || to <= from {
		return nil
	}
	return order.Advance(ctx, d, from, to)
}

// Expire closes what is due by the database's clock, in batches, until nothing is due or ctx
// ends, and returns how many orders it moved. An order that a callback pays in between is not
// an error. An order that cannot be closed (for example because its stock is inconsistent) is
// an error but holds up no other; it is retried later.
func (p *Processor) Expire(ctx context.Context) (moved int, err error) { return p.ExpireLate(ctx, 0) }

// ExpireLate is Expire for what has been due for the given time.
func (p *Processor) ExpireLate(ctx context.Context, late time.Duration) (moved int, err error) {
	begin, pass, err := p.due.from(ctx, p.o.DB)
	if err != nil {
		return 0, err
	}
	from := Mark{At: begin}
	until := p.o.DB.Now() - late.Microseconds()
	waits := until // the first that waits for its supplier
	var stuck error
	for ctx.Err() == nil {
		page, seen, err := Due(ctx, p.o.DB.Read, from, until, expireBatch)
		if err != nil {
			return moved, err
		}
		due, queried := p.split(page)
		p.query(queried)
		if len(queried) > 0 {
			waits = min(waits, queried[0].NextAt)
		}
		if len(due) == 0 && !seen.End() {
			from = seen
			continue
		}
		n := 0
		if len(due) > 0 {
			from = Mark{At: due[0].NextAt, ID: due[0].ID - 1}
			n, err = p.expireFound(ctx, due)
		}
		if stuckError := (*stuckError)(nil); errors.As(err, &stuckError) {
			stuck, err = cmp.Or(stuck, err), nil
		}
		if err != nil && !db.IsConflict(err) {
			return moved, fmt.Errorf("expire orders: %w", err)
		}
		moved += n
		if n == 0 { // nothing is due, or others are working on it
			if len(due) > 0 {
				until = due[0].NextAt
			}
			return moved, cmp.Or(stuck, p.due.done(ctx, p.o.DB, begin, until, waits, pass))
		}
	}
	return moved, stuck
}

// split divides due orders: the first need no supplier's answer, the others must be queried.
// Orders that wait for an unavailable supplier hold up no others.
func (p *Processor) split(page []Moment) (due, queried []Moment) {
	now := p.o.DB.Now()
	for _, m := range page {
		if _, ok := p.canQuery(m.Supplier); ok && (m.Status == order.Closing || m.Status == order.Paying && m.ExpiresAt > now) {
			queried = append(queried, m)
		} else {
			due = append(due, m)
		}
	}
	return due, queried
}

// expireFound closes orders that were found due.
func (p *Processor) expireFound(ctx context.Context, due []Moment) (moved int, err error) {
	ids := make([]int64, len(due))
	for i, o := range due {
		ids[i] = o.ID
	}
	moved, err = p.expire(ctx, ids)
	if db.IsConflict(err) {
		// One of the batch was paid in between. Small batches keep a stream of payments from
		// starving the timeouts of other orders.
		moved, err = p.expire(ctx, ids[:1])
	}
	if err != nil && !db.IsConflict(err) && !db.IsUnavailable(err) && ctx.Err() == nil {
		return p.expireEach(ctx, ids)
	}
	return moved, err
}

// stuckError identifies an order that cannot be closed.
type stuckError struct {
	id    int64
	cause error
}

func (e *stuckError) Error() string { return fmt.Sprintf("close order of id %d: %v", e.id, e.cause) }

func (e *stuckError) Unwrap() error { return e.cause }

// expireEach closes orders one by one, and postpones those that cannot be closed: each retry
// costs every other order a transaction of its own.
func (p *Processor) expireEach(ctx context.Context, ids []int64) (moved int, err error) {
	var failed []int64
	for _, id := range ids {
		n, alone := p.expire(ctx, []int64{id})
		moved += n
		if ctx.Err() != nil {
			break
		}
		if alone != nil && !db.IsConflict(alone) {
			failed = append(failed, id)
			err = cmp.Or(err, error(&stuckError{id, alone}))
		}
	}
	if later := order.Postpone(ctx, p.o.DB, failed, p.o.DB.Now()+order.RetryClose.Microseconds()); later != nil {
		return moved, later
	}
	return moved, err
}

// expire closes those of the orders that are still due, in one transaction.
func (p *Processor) expire(ctx context.Context, ids []int64) (moved int, err error) {
	var nudges map[int64][]queue.Nudge
	var due []*order.Order
	var queried []Moment
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		due = nil
		q := tx.NewSelect().Model(&due).Where("o.id IN (?)", bun.List(ids)).Where("o.next_at <= ?", p.o.DB.Now()).
			Where(order.IsOpen("o")).OrderExpr("o.next_at")
		// A locked order is being paid by a callback.
		if err := p.o.DB.SkipLocked(q).Scan(ctx); err != nil || len(due) == 0 {
			return err
		}
		attempts, err := openAttempts(ctx, tx, due)
		if err != nil {
			return err
		}
		// Another node may have been faster; orders that are now closing are queried first.
		due = slices.DeleteFunc(due, func(o *order.Order) bool {
			_, ok := p.canQuery(queriedAt(o, attempts[o.ID]))
			return ok && o.Status == order.Closing
		})
		if len(due) == 0 {
			return nil
		}
		w := tx.Writes()
		c := closing{p: p, by: order.ByTimeout}
		for _, o := range due {
			if o.Status == order.Paying && o.ExpiresAt > p.o.DB.Now() { // its supplier can no longer be queried
				w.Add(tx.NewRaw("UPDATE orders SET next_at = expires_at WHERE id = ?", o.ID))
				continue
			}
			c.add(o, attempts[o.ID], "clock")
		}
		moved, queried = len(due), c.queried
		nudges, err = c.write(ctx, tx, w)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, o := range due {
		metric.OrdersMoved.WithLabelValues(string(o.Status)).Inc()
	}
	p.query(queried)
	p.o.Nudger.Now(slices.Concat(slices.Collect(maps.Values(nudges))...))
	return moved, nil
}

// OrderData is the "data" of an order's notification (contract §6).
type OrderData struct {
	OrderNo         string `json:"order_no"`
	OutTradeNo      string `json:"out_trade_no"`
	Merchant        string `json:"merchant"`
	Amount          int64  `json:"amount"`
	Currency        string `json:"currency"`
	Status          string `json:"status"`
	Supplier        string `json:"supplier"`
	SupplierTradeNo string `json:"supplier_trade_no"`
	PaidAmount      int64  `json:"paid_amount"`
	FeeAmount       int64  `json:"fee_amount"`
	PaidAt          string `json:"paid_at,omitempty"`
	ClosedAt        string `json:"closed_at,omitempty"`
	CloseReason     string `json:"close_reason,omitempty"`
	Version         int64  `json:"version"`
}

// fact returns the notification of the order's new status. A merchant that is no longer in the
// settings still gets its row, by id.
func (p *Processor) fact(o *order.Order, to order.Status, version, at int64) notify.Fact {
	data := OrderData{
		OrderNo: o.OrderNo, OutTradeNo: o.OutTradeNo, Merchant: p.merchantCode(o.MerchantID), Amount: o.Amount,
		Currency: o.Currency, Status: string(to), SupplierTradeNo: o.SupplierTradeNo, PaidAmount: o.PaidAmount,
		FeeAmount: o.FeeAmount, CloseReason: o.CloseReason, Version: version,
	}
	if s, ok := p.o.Settings.Current().Suppliers.ByID(o.SupplierID); ok {
		data.Supplier = s.Code
	}
	if o.PaidAt != nil {
		data.PaidAt = notify.Stamp(*o.PaidAt)
	}
	if o.ClosedAt != nil {
		data.ClosedAt = notify.Stamp(*o.ClosedAt)
	}
	f := notify.Fact{
		MerchantID: o.MerchantID, SubjectID: o.ID, Type: "order." + string(to), Version: version, At: at,
		Data: data,
	}
	f.Routes = notify.Routes(p.o.Settings.Merchants(), o.MerchantID, f.Type, o.NotifyURL)
	if to == order.Paid {
		f.Currency, f.Amount = o.Currency, o.PaidAmount
	}
	return f
}
