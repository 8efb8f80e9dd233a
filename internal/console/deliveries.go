package console

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// DeliveryFilter asks for notifications. Empty fields do not filter.
type DeliveryFilter struct {
	OrderNo  string // whole; then the span's window does not count
	Status   string
	Merchant string // code
	Type     string
	Risk     string // a part of the money at risk; then the span's window does not count
	Slice
}

// Delivery is one line of the list of notifications.
type Delivery struct {
	notify.Delivery `bun:",extend"`

	OrderNo  string `bun:"order_no"`
	Amount   int64  `bun:"money"`
	Currency string `bun:"money_currency"`
	Merchant string `bun:"merchant"`
	// Of the last attempt; 0 where there was none.
	HTTPStatus int   `bun:"-"`
	TookUS     int64 `bun:"-"`
	// Parked says that it waits for its merchant's breaker.
	Parked bool `bun:"-"`
}

// deliveryColumns take the money from the notification while it is at risk, and
// else from the order.
const deliveryColumns = "COALESCE(o.order_no, '') AS order_no, COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = d.merchant_id), (SELECT s.code FROM subscriptions AS s WHERE s.id = d.merchant_id), '') AS merchant," +
	" CASE WHEN d.currency <> '' THEN d.amount ELSE COALESCE(o.amount, 0) END AS money, COALESCE(NULLIF(d.currency, ''), o.currency, '') AS money_currency"

// Deliveries is one page of notifications.
func (b *Book) Deliveries(ctx context.Context, f DeliveryFilter) (Page[Delivery], error) {
	match, scans, err := b.matchDeliveries(ctx, &f)
	if err != nil || match == nil {
		return Page[Delivery]{}, err
	}
	w := f.ids()
	if scans {
		if w, err = b.scan(ctx, f.Slice, w, "deliveries"); err != nil {
			return Page[Delivery]{}, err
		}
	}
	var rows []Delivery
	q := match.apply(b.db.Read.NewSelect().Model(&rows).ColumnExpr("d.*").ColumnExpr(deliveryColumns).
		Join("LEFT JOIN orders AS o ON o.id = d.subject_id"))
	if err := f.within(q, "d", w).Scan(ctx); err != nil {
		return Page[Delivery]{}, fmt.Errorf("read notifications: %w", err)
	}
	for i, r := range rows {
		rows[i].Parked = (r.Status == notify.Queued || r.Status == notify.RetryWait) && b.breakers.Of(r.MerchantID).Parked()
	}
	page := cut(f.Slice, w, rows, func(d Delivery) int64 { return d.ID })
	if err := counted(ctx, b, &page, f.Slice, scans, "deliveries", "d", match.apply); err != nil {
		return page, err
	}
	return page, b.addLast(ctx, page.Rows)
}

// addLast reads the last attempts of a page of notifications at once.
func (b *Book) addLast(ctx context.Context, rows []Delivery) error {
	at := map[int64]int{}
	var tried []int64
	for i, d := range rows {
		if at[d.ID] = i; d.Attempts > 0 {
			tried = append(tried, d.ID)
		}
	}
	if len(tried) == 0 {
		return nil
	}
	var all []notify.Attempt
	err := b.db.Read.NewSelect().Model(&all).Column("delivery_id", "http_status", "took_us").
		Where("na.delivery_id IN (?)", bun.List(tried)).
		Where("na.id = (SELECT max(l.id) FROM notify_attempts AS l WHERE l.delivery_id = na.delivery_id)").Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the last attempts: %w", err)
	}
	for _, a := range all {
		rows[at[a.DeliveryID]].HTTPStatus, rows[at[a.DeliveryID]].TookUS = a.HTTPStatus, a.TookUS
	}
	return nil
}

// waitingMost is how many waiting notifications are gathered by their own index.
// Where more wait, they are many among the newest, and the scan finds them soon.
const waitingMost = 20_000

// matchDeliveries is the filter as conditions; nil = nothing can match. scans
// says that no index serves them.
func (b *Book) matchDeliveries(ctx context.Context, f *DeliveryFilter) (c conditions, scans bool, err error) {
	c = conditions{}
	const waits = "d.next_at IS NOT NULL"
	switch {
	case f.OrderNo != "":
		c.add("d.subject_id = (SELECT x.id FROM orders AS x WHERE x.order_no = ?)", f.OrderNo)
		f.From, f.To = 0, 0
	case f.Risk != "":
		rows, ok := report.RowsOf(report.Part(f.Risk), b.db.Now())
		if !ok || rows.Table != "deliveries" {
			return nil, false, nil
		}
		c.add(rows.Where, rows.Args...)
		f.From, f.To = 0, 0
		scans = true
	default:
		scans = f.Status != "" || f.Merchant != "" || f.Type != ""
	}
	c.equal("d.status", f.Status)
	c.equal("d.event_type", f.Type)
	if f.Merchant != "" {
		id, err := b.MerchantID(ctx, f.Merchant)
		if err != nil || id == 0 {
			return nil, false, err
		}
		c.add("d.merchant_id = ?", id)
	}
	if scans && (f.Risk != "" || isWaiting(f.Status)) {
		few, err := b.fewWait(ctx)
		if err != nil {
			return nil, false, err
		}
		if few {
			c.add("d.id IN (SELECT w.id FROM deliveries AS w WHERE w.next_at IS NOT NULL LIMIT ?)", waitingMost)
			scans = false
		} else {
			c.add(waits)
		}
	}
	return c, scans, nil
}

// isWaiting says whether a notification of that status is still on its way.
func isWaiting(status string) bool {
	switch notify.Status(status) {
	case notify.Queued, notify.Sending, notify.RetryWait:
		return true
	}
	return false
}

func (b *Book) fewWait(ctx context.Context) (bool, error) {
	var n int
	err := b.db.Read.NewRaw("SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE next_at IS NOT NULL LIMIT ?) AS w", waitingMost+1).Scan(ctx, &n)
	if err != nil {
		return false, fmt.Errorf("count waiting notifications: %w", err)
	}
	return n <= waitingMost, nil
}

// ErrTooMany says that a filter finds more notifications than may be taken up
// together.
var ErrTooMany = errors.New("too many notifications match: narrow the filter")

// Matching is every notification of the filter, oldest first: for what is done
// to all of them. ids narrows it to some of them. Errors: ErrTooMany.
func (b *Book) Matching(ctx context.Context, f DeliveryFilter, ids []int64, most int) ([]Delivery, error) {
	match, _, err := b.matchDeliveries(ctx, &f)
	if err != nil || match == nil {
		return nil, err
	}
	if ids != nil {
		match.add("d.id IN (?)", bun.List(ids))
	}
	w := f.window()
	var rows []Delivery
	q := match.apply(b.db.Read.NewSelect().Model(&rows).ColumnExpr("d.*").ColumnExpr(deliveryColumns).
		Join("LEFT JOIN orders AS o ON o.id = d.subject_id"))
	err = q.Where("d.id BETWEEN ? AND ?", w.low, w.high).OrderExpr("d.id").Limit(int64(most) + 1).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read all that match: %w", err)
	}
	if len(rows) > most {
		return nil, ErrTooMany
	}
	return rows, nil
}
