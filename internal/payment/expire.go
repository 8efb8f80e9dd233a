package payment

import (
	"cmp"
	"context"
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

// expireBatch is how many due orders one transaction closes: callbacks wait for it, some
// milliseconds.
const expireBatch int64 = 500

// stuckFor is how long an order that cannot be closed is skipped.
const stuckFor = time.Minute

// Expire closes what is due by the database's clock, a batch at a time, until nothing is
// due or the context ends, and returns how many orders it moved. An order that a callback
// pays in between is no error. An order that cannot be closed (its stock is inconsistent,
// for example) is an error, and holds up no other.
func (p *Processor) Expire(ctx context.Context) (moved int, err error) {
	var stuck error
	for ctx.Err() == nil {
		n, err := p.expire(ctx, p.due(expireBatch))
		if db.IsConflict(err) {
			// One of the batch was paid in between. Small batches make sure that a
			// stream of payments cannot starve the timeouts of other orders.
			n, err = p.expire(ctx, p.due(1))
		}
		if err != nil && !db.IsConflict(err) && !db.IsUnavailable(err) && ctx.Err() == nil {
			n, err = p.expireEach(ctx)
			stuck = cmp.Or(stuck, err)
			err = nil
		}
		if err != nil && !db.IsConflict(err) {
			return moved, fmt.Errorf("expire orders: %w", err)
		}
		moved += n
		if n == 0 {
			break
		}
	}
	return moved, stuck
}

// expireEach closes what is due one by one. Where others can be closed, those that
// cannot are skipped for a while: each try costs every other order a transaction of its
// own.
func (p *Processor) expireEach(ctx context.Context) (moved int, err error) {
	var ids []int64
	if err := p.due(expireBatch)(p.o.DB.Read.NewSelect().Model((*order.Order)(nil)).Column("id")).Scan(ctx, &ids); err != nil {
		return 0, fmt.Errorf("find orders that are due: %w", err)
	}
	var failed []int64
	for _, id := range ids {
		n, alone := p.expire(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("o.id = ?", id).Where("o.next_at <= ?", p.o.DB.Now())
		})
		moved += n
		if ctx.Err() != nil {
			break
		}
		if alone != nil && !db.IsConflict(alone) {
			failed = append(failed, id)
			err = cmp.Or(err, fmt.Errorf("close order of id %d: %w", id, alone))
		}
	}
	if moved > 0 {
		p.stuck.add(failed, p.o.DB.Now()+stuckFor.Microseconds())
	}
	return moved, err
}

// due selects the next orders to close.
func (p *Processor) due(limit int64) func(*bun.SelectQuery) *bun.SelectQuery {
	return func(q *bun.SelectQuery) *bun.SelectQuery {
		now := p.o.DB.Now()
		if stuck := p.stuck.at(now); len(stuck) > 0 {
			q = q.Where("o.id NOT IN (?)", bun.List(stuck))
		}
		return q.Where("o.next_at <= ?", now).OrderExpr("o.next_at").Limit(limit)
	}
}

// stuckOrders are those that are skipped, and until when (Unix µs).
type stuckOrders struct {
	mu    sync.Mutex
	until map[int64]int64
}

func (s *stuckOrders) add(ids []int64, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[int64]int64{}
	}
	for _, id := range ids {
		s.until[id] = until
	}
}

func (s *stuckOrders) at(now int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.until, func(_, until int64) bool { return until <= now })
	return slices.Sorted(maps.Keys(s.until))
}

// expire closes the orders that choose selects, in one transaction.
func (p *Processor) expire(ctx context.Context, choose func(*bun.SelectQuery) *bun.SelectQuery) (moved int, err error) {
	var nudges map[int64][]queue.Nudge
	var due []*order.Order
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		due = nil
		q := choose(tx.NewSelect().Model(&due))
		// An order that is locked is being paid by a callback.
		if err := p.o.DB.SkipLocked(q).Scan(ctx); err != nil {
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

// NextDue is the moment (Unix µs) at which the next order is due, or 0.
func (p *Processor) NextDue(ctx context.Context) (int64, error) {
	var at []int64
	err := p.o.DB.Read.NewRaw("SELECT next_at FROM orders WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1").Scan(ctx, &at)
	if err != nil || len(at) == 0 {
		return 0, err
	}
	return at[0], nil
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
