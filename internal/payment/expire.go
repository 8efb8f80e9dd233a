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
	// expireBatch is how many due orders one transaction closes: callbacks wait for it,
	// some milliseconds.
	expireBatch = 500
	// passEvery is how often everything from the watermark on is read.
	passEvery = time.Minute
	// readMargin is how much of what was read is read again: an order may be committed
	// after the moment at which it is due.
	readMargin = 2 * time.Second
	// watermarkMargin is longer than any transaction, and a request's wait for one.
	watermarkMargin = 2 * time.Minute
)

// dueReader is how far this process has read the orders that are due. It is lost with the
// process, which begins at the watermark again.
type dueReader struct {
	mu       sync.Mutex
	read     int64 // nothing is due before; Unix µs
	passedAt int64 // when everything from the watermark on was read
}

// from is where to read from. Each passEvery it is the watermark: that finds what was
// committed later than readMargin allows for, or came by an import.
func (r *dueReader) from(ctx context.Context, d *db.DB) (from int64, pass bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Now()-r.passedAt < passEvery.Microseconds() {
		return r.read, false, nil
	}
	from, err = order.Watermark(ctx, d.Read)
	return from, err == nil, err
}

// done notes that nothing is left before a moment. After a pass the watermark follows.
func (r *dueReader) done(ctx context.Context, d *db.DB, from, to int64, pass bool) error {
	now := d.Now()
	r.mu.Lock()
	r.read = min(to, now-readMargin.Microseconds())
	if pass {
		r.passedAt = now
	}
	r.mu.Unlock()
	if to = min(to, now-watermarkMargin.Microseconds()); !pass || to <= from {
		return nil
	}
	return order.Advance(ctx, d, from, to)
}

// Expire closes what is due by the database's clock, a batch at a time, until nothing is
// due or the context ends, and returns how many orders it moved. An order that a callback
// pays in between is no error. An order that cannot be closed (its stock is inconsistent,
// for example) is an error, and holds up no other: it is due again later.
func (p *Processor) Expire(ctx context.Context) (moved int, err error) { return p.ExpireLate(ctx, 0) }

// ExpireLate is Expire for what has been due for some time.
func (p *Processor) ExpireLate(ctx context.Context, late time.Duration) (moved int, err error) {
	begin, pass, err := p.due.from(ctx, p.o.DB)
	if err != nil {
		return 0, err
	}
	from := begin
	var stuck error
	for ctx.Err() == nil {
		until := p.o.DB.Now() - late.Microseconds()
		due, err := order.Due(ctx, p.o.DB.Read, from, until, expireBatch)
		if err != nil {
			return moved, err
		}
		n := 0
		if len(due) > 0 {
			from, until = due[0].NextAt, due[0].NextAt
			n, err = p.expireFound(ctx, due)
		}
		if stuckError := (*stuckError)(nil); errors.As(err, &stuckError) {
			stuck, err = cmp.Or(stuck, err), nil
		}
		if err != nil && !db.IsConflict(err) {
			return moved, fmt.Errorf("expire orders: %w", err)
		}
		moved += n
		if n == 0 { // nothing is due, or others are at work on it
			return moved, cmp.Or(stuck, p.due.done(ctx, p.o.DB, begin, until, pass))
		}
	}
	return moved, stuck
}

// expireFound closes what was found due.
func (p *Processor) expireFound(ctx context.Context, due []order.Moment) (moved int, err error) {
	ids := make([]int64, len(due))
	for i, o := range due {
		ids[i] = o.ID
	}
	moved, err = p.expire(ctx, ids)
	if db.IsConflict(err) {
		// One of the batch was paid in between. Small batches make sure that a stream of
		// payments cannot starve the timeouts of other orders.
		moved, err = p.expire(ctx, ids[:1])
	}
	if err != nil && !db.IsConflict(err) && !db.IsUnavailable(err) && ctx.Err() == nil {
		return p.expireEach(ctx, ids)
	}
	return moved, err
}

// stuckError names an order that cannot be closed.
type stuckError struct {
	id    int64
	cause error
}

func (e *stuckError) Error() string { return fmt.Sprintf("close order of id %d: %v", e.id, e.cause) }

func (e *stuckError) Unwrap() error { return e.cause }

// expireEach closes orders one by one, and postpones those that cannot be closed: each try
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

// expire closes those of the orders that are due still, in one transaction.
func (p *Processor) expire(ctx context.Context, ids []int64) (moved int, err error) {
	var nudges map[int64][]queue.Nudge
	var due []*order.Order
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		due = nil
		q := tx.NewSelect().Model(&due).Where("o.id IN (?)", bun.List(ids)).Where("o.next_at <= ?", p.o.DB.Now()).
			Where(order.IsOpen("o")).OrderExpr("o.next_at")
		// An order that is locked is being paid by a callback.
		if err := p.o.DB.SkipLocked(q).Scan(ctx); err != nil || len(due) == 0 {
			return err
		}
		c := closing{p: p, by: order.ByTimeout}
		for _, o := range due {
			c.add(o, "clock")
		}
		moved = len(due)
		nudges, err = c.write(ctx, tx, tx.Writes())
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, o := range due {
		metric.OrdersMoved.WithLabelValues(string(o.Status)).Inc()
	}
	p.o.Nudger.Now(slices.Concat(slices.Collect(maps.Values(nudges))...))
	return moved, nil
}

// orderData is the "data" of an order's notification (contract §6).
type orderData struct {
	OrderNo         string `json:"order_no"`
	OutTradeNo      string `json:"out_trade_no"`
	Merchant        string `json:"merchant"`
	Amount          int64  `json:"amount"`
	Currency        string `json:"currency"`
	Status          string `json:"status"`
	Supplier        string `json:"supplier"`
	SupplierTradeNo string `json:"supplier_trade_no"`
	PaidAmount      int64  `json:"paid_amount"`
	PaidAt          string `json:"paid_at,omitempty"`
	ClosedAt        string `json:"closed_at,omitempty"`
	CloseReason     string `json:"close_reason,omitempty"`
	Version         int64  `json:"version"`
}

// fact is the order's new status as the merchant is notified of it. A merchant that is
// no longer in the settings still gets its row, by its id.
func (p *Processor) fact(o *order.Order, to order.Status, version, at int64) notify.Fact {
	data := orderData{
		OrderNo: o.OrderNo, OutTradeNo: o.OutTradeNo, Merchant: p.merchantCode(o.MerchantID), Amount: o.Amount,
		Currency: o.Currency, Status: string(to), SupplierTradeNo: o.SupplierTradeNo, PaidAmount: o.PaidAmount,
		CloseReason: o.CloseReason, Version: version,
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
