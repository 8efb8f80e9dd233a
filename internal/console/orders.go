package console

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/fund/refund"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// OrderList declares the list of orders.
var OrderList = list.New(list.Spec{
	Name: "orders",
	Sources: []list.Source{{
		Table: "orders", Alias: "o", Columns: orderColumns, Key: "id",
		Money: list.Money{Minor: "o.amount", Currency: "o.currency"}, MerchantColumn: "o.merchant_id",
	}},
	Fields: []list.Field{
		{Name: "no", Match: matchNumber}, // ours or the merchant's, complete
		amountField,
		{Name: "status", Column: "status", Values: names(order.Statuses...)},
		// The + keeps the merchant's index from being used: it leads to all orders the merchant
		// ever placed, which SQLite would read and sort for one page.
		{Name: "merchant", Match: coded("merchants", "+o.merchant_id"), Suggest: codes("merchants", "name")},
		{Name: "supplier", Match: coded("suppliers", "o.supplier_id"), Suggest: codes("suppliers", "name")},
		atRisk("orders", func(r report.Rows) list.Match {
			return list.Match{Where: "o.id IN (" + r.IDs + ")", Args: r.Args, Indexed: true, AnyAge: true}
		}),
		{Name: "paid", Hidden: true, Check: checkDays, Match: matchPaid}, // linked from a preset
		// Linked from the alerts supplier_unreachable and stuck_orders.
		{Name: "awaits", Hidden: true, Match: matchAwaited},
		{Name: "no_result", Hidden: true, Values: []string{"yes"}, Match: matchNoResult},
	},
})

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
	TradeNo    string       `bun:"supplier_trade_no"`
	OrderMoney
	DisputedAmount int64 `bun:"disputed_amount"` // in disputes that are open or lost
	// NotifyStatus is notify_status in the contract.
	NotifyStatus string `bun:"-"`
}

// RefundStatus returns how much of the payment was refunded: none, partial or full.
func (o *Order) RefundStatus() string {
	return (&order.Order{PaidAmount: o.PaidAmount, RefundedAmount: o.RefundedAmount}).RefundStatus()
}

var orderColumns = "o.id, o.order_no, o.out_trade_no, o.amount, o.currency, o.subject, o.status, o.created_at, o.paid_at, o.supplier_trade_no, o.disputed_amount, " + orderMoney + "," +
	" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = o.merchant_id), '') AS merchant," +
	" COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = o.supplier_id), '') AS supplier"

// Orders reads one page of orders.
func (b *Reader) Orders(ctx context.Context, q list.Query, s list.Slice) (list.Page[Order], error) {
	page, err := list.Read(ctx, b.db, q, s, func(o *Order) int64 { return o.ID })
	if err != nil {
		return page, err
	}
	return page, b.addNotifyStatus(ctx, page.Rows)
}

func matchNumber(ctx context.Context, in list.Lookup, no string) (list.Match, error) {
	ids, err := numbered(ctx, in.Read, no)
	return list.Match{Where: "o.id IN (?)", Args: []any{bun.List(ids)}, None: len(ids) == 0, Indexed: true, AnyAge: true}, err
}

// matchAwaited matches the orders that wait for a supplier's result.
func matchAwaited(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
	id, err := idOf(ctx, in.Read, "suppliers", code)
	ids, args := report.AwaitedOf(id)
	return list.Match{Where: "o.id IN (" + ids + ")", Args: args, None: id == 0, Indexed: true, AnyAge: true}, err
}

// matchNoResult matches the orders that have been queried without a result.
func matchNoResult(_ context.Context, in list.Lookup, value string) (list.Match, error) {
	ids, args := report.NoResult(in.DB.Now())
	return list.Match{Where: "o.id IN (" + ids + ")", Args: args, None: value != "yes", Indexed: true, AnyAge: true}, nil
}

// maxNumbered bounds the orders with one number.
const maxNumbered = 50

// numbered finds the orders with a number: ours, or a merchant's own, which several merchants
// may use. Both are found by unique indexes. CROSS JOIN fixes the join order, because SQLite
// would scan the orders for each merchant.
func numbered(ctx context.Context, q bun.IDB, no string) ([]int64, error) {
	var ids []int64
	err := q.NewRaw("SELECT id FROM orders WHERE order_no = ? UNION SELECT o.id FROM merchants AS m"+
		" CROSS JOIN orders AS o WHERE o.merchant_id = m.id AND o.out_trade_no = ? LIMIT ?", no, no, maxNumbered).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find the order of a number: %w", err)
	}
	return ids, nil
}

// deliveryRows bounds the deliveries read per order of a list.
const deliveryRows = 20

// addNotifyStatus reads the deliveries of a page of orders in one query, and masks the page.
func (b *Reader) addNotifyStatus(ctx context.Context, rows []Order) error {
	maskSubjects(rows)
	ids := make([]int64, len(rows))
	for i, o := range rows {
		ids[i] = o.ID
	}
	of := map[int64][]notify.Delivery{}
	if len(ids) > 0 {
		var all []notify.Delivery
		err := b.db.Read.NewSelect().Model(&all).Column("id", "event_id", "subject_id", "recipient_id", "status", "to_subscriber").
			Where("d.subject_id IN (?)", bun.List(ids)).OrderExpr("d.id DESC").Limit(int64(len(ids)) * deliveryRows).Scan(ctx)
		if err != nil {
			return fmt.Errorf("read the deliveries of orders: %w", err)
		}
		for _, d := range all {
			of[d.SubjectID] = append(of[d.SubjectID], d)
		}
	}
	for i := range rows {
		told := of[rows[i].ID]
		own := slices.IndexFunc(told, func(d notify.Delivery) bool { return !d.ToSubscriber })
		rows[i].NotifyStatus = notify.OrderStatus(told, own >= 0 && b.isParked(told[own].Recipient()))
	}
	return nil
}

// OrderMoney is what a merchant got for an order and what came off it, in minor units.
type OrderMoney struct {
	PaidAmount     int64 `bun:"paid_amount"`
	FeeAmount      int64 `bun:"fee_amount"`
	FeeReturned    int64 `bun:"fee_returned"` // of the fee, with refunds
	RefundedAmount int64 `bun:"refunded_amount"`
	RefundsHeld    int64 `bun:"refunds_held"` // for refunds without a result
	// Disputed is what disputes hold in reserve or took, unless it came back: of a dispute that
	// was won, it counts until the supplier has returned the money.
	Disputed    int64 `bun:"disputed"`
	DisputeFees int64 `bun:"dispute_fees"` // without what came back
}

// Net returns what the merchant has of the order: what the order's entries add up to on the
// merchant's account.
func (m OrderMoney) Net() int64 {
	return m.PaidAmount - m.FeeAmount + m.FeeReturned - m.RefundedAmount - m.RefundsHeld - m.Disputed - m.DisputeFees
}

// Reduced reports whether anything came off the payment.
func (m OrderMoney) Reduced() bool {
	return m != OrderMoney{PaidAmount: m.PaidAmount}
}

// orderMoney are the columns of OrderMoney for orders AS o.
var orderMoney = "o.paid_amount, o.fee_amount, o.refunded_amount," +
	" CASE WHEN o.refunded_amount > 0 THEN " + sumOfRefunds("fee_returned", refund.Succeeded) + " ELSE 0 END AS fee_returned, " +
	sumOfRefunds("amount", refund.Moves.Open()...) + " AS refunds_held, " +
	sumOfDisputes("dp.amount - CASE WHEN dp.released THEN dp.amount ELSE dp.reinstated END") + " AS disputed, " +
	sumOfDisputes("dp.fee - dp.fee_back") + " AS dispute_fees"

func sumOfRefunds(column string, of ...refund.Status) string {
	return "COALESCE((SELECT sum(rf." + column + ") FROM refunds AS rf WHERE rf.order_id = o.id AND rf.order_id <> 0 AND " +
		refund.Moves.In("rf.status", of...) + "), 0)"
}

func sumOfDisputes(what string) string {
	return "COALESCE((SELECT sum(" + what + ") FROM disputes AS dp WHERE dp.order_id = o.id AND dp.order_id <> 0), 0)"
}

// MoneyOf reads what a merchant got for an order.
func MoneyOf(ctx context.Context, q bun.IDB, orderID int64) (m OrderMoney, err error) {
	if err := q.NewRaw("SELECT "+orderMoney+" FROM orders AS o WHERE o.id = ?", orderID).Scan(ctx, &m); err != nil {
		return m, fmt.Errorf("read the money of an order: %w", err)
	}
	return m, nil
}

func (b *Reader) addMoney(ctx context.Context, s *Story) (err error) {
	s.Money, err = MoneyOf(ctx, b.db.Read, s.Order.ID)
	return err
}
