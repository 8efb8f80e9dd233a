package console

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// OrderFilter asks for orders. Empty fields do not filter.
type OrderFilter struct {
	No       string // our number or the merchant's, whole; then the span's window does not count
	Status   string
	Merchant string // code
	Supplier string // code
	Currency string
	Amount   string // as people write it; see money.Sums
	Risk     string // a part of the money at risk; then the span's window does not count
	Slice
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
	// Told is how the telling of the merchant stands (contract, notify_status).
	Told string `bun:"-"`
}

const orderColumns = "o.id, o.order_no, o.out_trade_no, o.amount, o.currency, o.subject, o.status, o.created_at," +
	" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = o.merchant_id), '') AS merchant," +
	" COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = o.supplier_id), '') AS supplier"

// Orders is one page of orders.
func (b *Book) Orders(ctx context.Context, f OrderFilter) (Page[Order], error) {
	match, scans, err := b.matchOrders(ctx, &f)
	if err != nil || match == nil {
		return Page[Order]{}, err
	}
	w := f.ids()
	if scans {
		if w, err = b.scan(ctx, f.Slice, w, "orders"); err != nil {
			return Page[Order]{}, err
		}
	}
	var rows []Order
	q := match.apply(b.db.Read.NewSelect().TableExpr("orders AS o").ColumnExpr(orderColumns))
	if err := f.within(q, "o", w).Scan(ctx, &rows); err != nil {
		return Page[Order]{}, fmt.Errorf("read orders: %w", err)
	}
	page := cut(f.Slice, w, rows, func(o Order) int64 { return o.ID })
	if err := counted(ctx, b, &page, f.Slice, w, scans, "orders", "o", match.apply); err != nil {
		return page, err
	}
	return page, b.addTold(ctx, page.Rows)
}

// matchOrders is the filter as conditions; nil = nothing can match. scans says
// that no index serves them.
func (b *Book) matchOrders(ctx context.Context, f *OrderFilter) (c conditions, scans bool, err error) {
	c = conditions{}
	switch {
	case f.No != "":
		ids, err := b.numbered(ctx, f.No)
		if err != nil || len(ids) == 0 {
			return nil, false, err
		}
		c.add("o.id IN (?)", bun.List(ids))
		f.From, f.To = 0, 0
	case f.Risk != "":
		rows, ok := report.RowsOf(report.Part(f.Risk), b.db.Now())
		if !ok || rows.Table != "orders" {
			return nil, false, nil
		}
		c.add("o.id IN ("+rows.IDs+")", rows.Args...)
		f.From, f.To = 0, 0
	default:
		scans = f.Status != "" || f.Merchant != "" || f.Supplier != "" || f.Currency != "" || f.Amount != ""
	}
	c.equal("o.status", f.Status)
	c.equal("o.currency", f.Currency)
	if f.Amount != "" {
		var sums []string
		var args []any
		for minor, currencies := range money.Sums(f.Amount) {
			sums, args = append(sums, "o.amount = ? AND o.currency IN (?)"), append(args, minor, bun.List(currencies))
		}
		if len(sums) == 0 {
			return nil, false, nil
		}
		c.add("("+strings.Join(sums, " OR ")+")", args...)
	}
	if f.Merchant != "" {
		id, err := b.MerchantID(ctx, f.Merchant)
		if err != nil || id == 0 {
			return nil, false, err
		}
		// With the sign, no index of the merchant: its numbers' leads to all that it ever
		// ordered, and SQLite would read and sort them for one page.
		c.add("+o.merchant_id = ?", id)
	}
	if f.Supplier != "" {
		id, err := b.SupplierID(ctx, f.Supplier)
		if err != nil || id == 0 {
			return nil, false, err
		}
		c.add("o.supplier_id = ?", id)
	}
	return c, scans, nil
}

// numberedMost bounds the orders of one number.
const numberedMost = 50

// numbered finds the orders of a number: ours, or a merchant's own, which several
// merchants may have given. Both are found by unique indexes.
func (b *Book) numbered(ctx context.Context, no string) ([]int64, error) {
	var ids []int64
	err := b.db.Read.NewRaw("SELECT id FROM orders WHERE order_no = ? UNION SELECT o.id FROM merchants AS m"+
		" JOIN orders AS o ON o.merchant_id = m.id AND o.out_trade_no = ? LIMIT ?", no, no, numberedMost).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find the order of a number: %w", err)
	}
	return ids, nil
}

// toldRows bounds the deliveries that are read of one order of a list.
const toldRows = 20

// addTold reads the deliveries of a page of orders at once, and masks the page.
func (b *Book) addTold(ctx context.Context, rows []Order) error {
	maskSubjects(rows)
	ids := make([]int64, len(rows))
	for i, o := range rows {
		ids[i] = o.ID
	}
	of := map[int64][]notify.Delivery{}
	if len(ids) > 0 {
		var all []notify.Delivery
		err := b.db.Read.NewSelect().Model(&all).Column("id", "event_id", "subject_id", "merchant_id", "status", "house").
			Where("d.subject_id IN (?)", bun.List(ids)).OrderExpr("d.id DESC").Limit(int64(len(ids)) * toldRows).Scan(ctx)
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
		rows[i].Told = notify.OrderStatus(told, own >= 0 && b.isParked(told[own].MerchantID))
	}
	return nil
}
