package payment

import (
	"context"
	"fmt"

	"backstop/internal/db"
	"backstop/internal/metric"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/queue"

	"github.com/uptrace/bun"
)

// expireBatch is how many due orders one transaction closes: enough to be cheap,
// few enough that callbacks wait for milliseconds.
const expireBatch int64 = 500

// Expire closes what is due by the database's clock, a batch at a time, until
// nothing is due or the context ends; it says how many orders it moved. Losing
// an order to a callback is no error: the payment won.
func (p *Processor) Expire(ctx context.Context) (moved int, err error) {
	for ctx.Err() == nil {
		n, err := p.expire(ctx, expireBatch)
		if db.IsConflict(err) {
			// One of the batch was paid in between. Small batches make sure that a
			// stream of payments cannot starve the timeouts of other orders.
			n, err = p.expire(ctx, 1)
		}
		if err != nil && !db.IsConflict(err) {
			return moved, fmt.Errorf("expire orders: %w", err)
		}
		moved += n
		if n == 0 {
			return moved, nil
		}
	}
	return moved, nil
}

func (p *Processor) expire(ctx context.Context, limit int64) (moved int, err error) {
	var nudges map[int][]queue.Nudge
	var due []*order.Order
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		due = nil
		q := tx.NewSelect().Model(&due).Where("o.next_at <= ?", p.o.DB.Now()).OrderExpr("o.next_at").Limit(limit)
		// An order that a callback holds is being paid: leave it to the callback.
		if err := p.o.DB.SkipLocked(q).Scan(ctx); err != nil {
			return err
		}
		c := closing{p: p, by: order.ByTimeout}
		for i, o := range due {
			c.add(i, o, "clock")
		}
		moved = len(due)
		nudges, err = c.write(ctx, tx, db.NewWrites(tx))
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, o := range due {
		metric.OrdersMoved.WithLabelValues(string(o.Status)).Inc()
	}
	flat := make([]queue.Nudge, 0, len(nudges))
	for _, n := range nudges {
		flat = append(flat, n...)
	}
	p.o.Nudger.Now(flat)
	return moved, nil
}

// NextDue is the moment (Unix µs) at which the next order wants attention, or 0.
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

// fact is what the merchant is told of the order's new status. A merchant that
// is gone from the settings still gets its row, addressed by id.
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
