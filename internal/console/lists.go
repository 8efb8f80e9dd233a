package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// OrderFilter asks for orders. Empty fields do not filter.
type OrderFilter struct {
	No       string // our number or the merchant's, whole
	Status   string
	Merchant string // code
	Supplier string // code
	Currency string
	Before   int64
}

// Order is one line of the list of orders.
type Order struct {
	ID         int64        `bun:"id"`
	OrderNo    string       `bun:"order_no"`
	OutTradeNo string       `bun:"out_trade_no"`
	Merchant   string       `bun:"merchant"`
	Supplier   string       `bun:"supplier"`
	Amount     int64        `bun:"amount"`
	Currency   string       `bun:"currency"`
	Subject    string       `bun:"subject"`
	Status     order.Status `bun:"status"`
	CreatedAt  int64        `bun:"created_at"`
	PaidAt     *int64       `bun:"paid_at"`
	// Told is how the telling of the merchant stands (contract, notify_status).
	Told string `bun:"-"`
}

const orderColumns = "o.id, o.order_no, o.out_trade_no, o.amount, o.currency, o.subject, o.status, o.created_at, o.paid_at," +
	" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = o.merchant_id), '') AS merchant," +
	" COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = o.supplier_id), '') AS supplier"

// Orders is one page of orders.
func (b *Book) Orders(ctx context.Context, f OrderFilter) (Page[Order], error) {
	q := b.db.Read.NewSelect().TableExpr("orders AS o").ColumnExpr(orderColumns).OrderExpr("o.id DESC").Limit(PageSize + 1)
	var floor int64
	var err error
	if f.No != "" {
		ids, err := b.numbered(ctx, f.No)
		if err != nil || len(ids) == 0 {
			return Page[Order]{}, err
		}
		q = q.Where("o.id IN (?)", bun.List(ids))
	} else if f != (OrderFilter{Before: f.Before}) {
		if floor, err = b.floor(ctx, "orders", f.Before, scanRows); err != nil {
			return Page[Order]{}, err
		}
		q = q.Where("o.id >= ?", floor)
	}
	if f.Status != "" {
		q = q.Where("o.status = ?", f.Status)
	}
	if f.Currency != "" {
		q = q.Where("o.currency = ?", f.Currency)
	}
	if f.Merchant != "" {
		q = q.Where("o.merchant_id = (SELECT m.id FROM merchants AS m WHERE m.code = ?)", f.Merchant)
	}
	if f.Supplier != "" {
		q = q.Where("o.supplier_id = (SELECT su.id FROM suppliers AS su WHERE su.code = ?)", f.Supplier)
	}
	if f.Before > 0 {
		q = q.Where("o.id < ?", f.Before)
	}
	var rows []Order
	if err := q.Scan(ctx, &rows); err != nil {
		return Page[Order]{}, fmt.Errorf("read orders: %w", err)
	}
	page := cut(rows, floor, func(o Order) int64 { return o.ID })
	return page, b.addTold(ctx, page.Rows)
}

// numbered finds the orders of a number: ours, or a merchant's own, which several
// merchants may have given. Both are found by unique indexes.
func (b *Book) numbered(ctx context.Context, no string) ([]int64, error) {
	var ids []int64
	err := b.db.Read.NewRaw("SELECT id FROM orders WHERE order_no = ? UNION SELECT o.id FROM merchants AS m"+
		" JOIN orders AS o ON o.merchant_id = m.id AND o.out_trade_no = ? LIMIT ?", no, no, PageSize).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find the order of a number: %w", err)
	}
	return ids, nil
}

// addTold reads the deliveries of a page of orders at once.
func (b *Book) addTold(ctx context.Context, rows []Order) error {
	ids := make([]int64, len(rows))
	for i, o := range rows {
		ids[i] = o.ID
	}
	of := map[int64][]notify.Delivery{}
	if len(ids) > 0 {
		var all []notify.Delivery
		err := b.db.Read.NewSelect().Model(&all).Column("id", "event_id", "subject_id", "merchant_id", "status", "house").
			Where("d.subject_id IN (?)", bun.List(ids)).OrderExpr("d.id DESC").Limit(PageSize * 20).Scan(ctx)
		if err != nil {
			return fmt.Errorf("read how merchants were told: %w", err)
		}
		for _, d := range all {
			of[d.SubjectID] = append(of[d.SubjectID], d)
		}
	}
	for i := range rows {
		told := of[rows[i].ID]
		own := slices.IndexFunc(told, func(d notify.Delivery) bool { return !d.House })
		rows[i].Told = notify.OrderStatus(told, own >= 0 && b.breakers.Of(told[own].MerchantID).Parked())
	}
	return nil
}

// DeliveryFilter asks for notifications. Empty fields do not filter.
type DeliveryFilter struct {
	OrderNo  string
	Status   string
	Merchant string // code
	Type     string
	Before   int64
}

// Delivery is one line of the list of notifications.
type Delivery struct {
	notify.Delivery `bun:",extend"`

	OrderNo  string `bun:"order_no"`
	Amount   int64  `bun:"amount"`
	Currency string `bun:"currency"`
	Merchant string `bun:"merchant"`
}

// Deliveries is one page of notifications.
func (b *Book) Deliveries(ctx context.Context, f DeliveryFilter) (Page[Delivery], error) {
	var rows []Delivery
	q := b.db.Read.NewSelect().Model(&rows).ColumnExpr("d.*").
		ColumnExpr("COALESCE(o.order_no, '') AS order_no, COALESCE(o.amount, 0) AS amount, COALESCE(o.currency, '') AS currency").
		ColumnExpr("COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = d.merchant_id)," +
			" (SELECT s.code FROM subscriptions AS s WHERE s.id = d.merchant_id), '') AS merchant").
		Join("LEFT JOIN orders AS o ON o.id = d.subject_id").OrderExpr("d.id DESC").Limit(PageSize + 1)
	var floor int64
	var err error
	switch {
	case f.OrderNo != "":
		q = q.Where("d.subject_id = (SELECT x.id FROM orders AS x WHERE x.order_no = ?)", f.OrderNo)
	case f != (DeliveryFilter{Before: f.Before}):
		if floor, err = b.floor(ctx, "deliveries", f.Before, scanRows); err != nil {
			return Page[Delivery]{}, err
		}
		q = q.Where("d.id >= ?", floor)
	}
	if f.Status != "" {
		q = q.Where("d.status = ?", f.Status)
	}
	if f.Type != "" {
		q = q.Where("d.event_type = ?", f.Type)
	}
	if f.Merchant != "" {
		q = q.Where("d.merchant_id = (SELECT m.id FROM merchants AS m WHERE m.code = ?)", f.Merchant)
	}
	if f.Before > 0 {
		q = q.Where("d.id < ?", f.Before)
	}
	if err := q.Scan(ctx); err != nil {
		return Page[Delivery]{}, fmt.Errorf("read notifications: %w", err)
	}
	return cut(rows, floor, func(d Delivery) int64 { return d.ID }), nil
}

// ErrNotFound says that there is no such thing to show.
var ErrNotFound = errors.New("there is no such thing")

// byTime orders a story; what happened at the same microsecond keeps its order.
func byTime(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.At, b.At) })
}
