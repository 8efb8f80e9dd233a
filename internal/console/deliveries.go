package console

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	// PublicID is the notification's id, of those that a page shows.
	PublicID string `bun:"-"`
}

// deliveryColumns take the money from the notification while it is at risk, and
// else from the order.
const deliveryColumns = "COALESCE(o.order_no, '') AS order_no, COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = d.merchant_id), (SELECT s.code FROM subscriptions AS s WHERE s.id = d.merchant_id), '') AS merchant," +
	" CASE WHEN d.currency <> '' THEN d.amount ELSE COALESCE(o.amount, 0) END AS money, COALESCE(NULLIF(d.currency, ''), o.currency, '') AS money_currency"

// Deliveries is one page of notifications.
func (b *Book) Deliveries(ctx context.Context, f DeliveryFilter) (Page[Delivery], error) {
	m, err := b.matchDeliveries(ctx, &f)
	if err != nil || m == nil {
		return Page[Delivery]{}, err
	}
	w := f.ids()
	if m.scans {
		if w, err = b.scan(ctx, f.Slice, w, "deliveries"); err != nil {
			return Page[Delivery]{}, err
		}
	}
	var rows []Delivery
	q := b.selectDeliveries(&rows)
	if m.gathered {
		q = q.Where("d.id IN (?)", bun.List(f.nearest(m.ids, w)))
	} else {
		q = m.apply(q)
	}
	if err := f.within(q, "d", w).Scan(ctx); err != nil {
		return Page[Delivery]{}, fmt.Errorf("read notifications: %w", err)
	}
	for i := range rows {
		rows[i].Parked = b.holds(&rows[i].Delivery)
		maskerOf(rows[i].OrderNo).delivery(&rows[i].Delivery)
	}
	page := cut(f.Slice, w, rows, func(d Delivery) int64 { return d.ID })
	if m.gathered {
		page.Count = int64(len(m.ids))
	} else if err := counted(ctx, b, &page, f.Slice, w, m.scans, "deliveries", "d", m.apply); err != nil {
		return page, err
	}
	if err := b.addIDs(ctx, page.Rows); err != nil {
		return page, err
	}
	return page, b.addLast(ctx, page.Rows)
}

// addIDs reads the public ids of a page of notifications at once.
func (b *Book) addIDs(ctx context.Context, rows []Delivery) error {
	events := make([]int64, len(rows))
	for i := range rows {
		events[i] = rows[i].EventID
	}
	ids, err := notify.IDsOf(ctx, b.db.Read, events)
	for i := range rows {
		rows[i].PublicID = ids[rows[i].EventID]
	}
	return err
}

// holds says whether a notification is parked.
func (b *Book) holds(d *notify.Delivery) bool {
	return (d.Status == notify.Queued || d.Status == notify.RetryWait) && b.isParked(d.MerchantID)
}

func (b *Book) selectDeliveries(rows *[]Delivery) *bun.SelectQuery {
	return b.db.Read.NewSelect().Model(rows).ColumnExpr("d.*").ColumnExpr(deliveryColumns).Join("LEFT JOIN orders AS o ON o.id = d.subject_id")
}

// nearest are the ids, of all in ascending order, that a page is made of, and one
// more.
func (s Slice) nearest(ids []int64, w bounds) []int64 {
	from, _ := slices.BinarySearch(ids, w.low)
	to, found := slices.BinarySearch(ids, w.high)
	if found {
		to++
	}
	ids = ids[from:max(from, to)]
	if most := s.size() + 1; len(ids) > most && s.At.Newer {
		return ids[:most]
	} else if len(ids) > most {
		return ids[len(ids)-most:]
	}
	return ids
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

// deliveryMatch is a filter of notifications, ready to be asked for.
type deliveryMatch struct {
	conditions
	scans bool // no index serves it
	// gathered says that ids are all that match, oldest first.
	gathered bool
	ids      []int64
}

// matchDeliveries reads a filter; nil = nothing can match.
func (b *Book) matchDeliveries(ctx context.Context, f *DeliveryFilter) (*deliveryMatch, error) {
	m := &deliveryMatch{}
	switch {
	case f.OrderNo != "":
		m.add("d.subject_id = (SELECT x.id FROM orders AS x WHERE x.order_no = ?)", f.OrderNo)
		f.From, f.To = 0, 0
	case f.Risk != "":
		rows, ok := report.RowsOf(report.Part(f.Risk), b.db.Now())
		if !ok || rows.Table != "deliveries" {
			return nil, nil
		}
		m.add(rows.Where, rows.Args...)
		f.From, f.To = 0, 0
		m.scans = true
	default:
		m.scans = f.Status != "" || f.Merchant != "" || f.Type != ""
	}
	m.equal("d.status", f.Status)
	m.equal("d.event_type", f.Type)
	if f.Merchant != "" {
		id, err := b.MerchantID(ctx, f.Merchant)
		if err != nil || id == 0 {
			return nil, err
		}
		m.add("d.merchant_id = ?", id)
	}
	if m.scans && (f.Risk != "" || isWaiting(f.Status)) {
		m.add("d.next_at IS NOT NULL")
		return m, b.gather(ctx, m, f.window())
	}
	return m, nil
}

// gather finds all that match among the waiting notifications, unless too many
// wait.
func (b *Book) gather(ctx context.Context, m *deliveryMatch, w bounds) error {
	var n int
	err := b.db.Read.NewRaw("SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE next_at IS NOT NULL LIMIT ?) AS w", waitingMost+1).Scan(ctx, &n)
	if err != nil {
		return fmt.Errorf("count waiting notifications: %w", err)
	}
	if n > waitingMost {
		return nil
	}
	// Not by id, or the planner would walk all notifications in its order.
	q := b.db.Read.NewSelect().TableExpr("(SELECT * FROM deliveries WHERE next_at IS NOT NULL LIMIT ?) AS d", waitingMost).ColumnExpr("d.id")
	if err := m.apply(q).Where("d.id BETWEEN ? AND ?", w.low, w.high).Scan(ctx, &m.ids); err != nil {
		return fmt.Errorf("gather waiting notifications: %w", err)
	}
	slices.Sort(m.ids)
	m.gathered, m.scans = true, false
	return nil
}

// isWaiting says whether a notification of that status is still on its way.
func isWaiting(status string) bool {
	switch notify.Status(status) {
	case notify.Queued, notify.Sending, notify.RetryWait:
		return true
	}
	return false
}

// Matching are the ids of the filter's notifications as of now, oldest first, at most
// limit and one more: for what is done to all of them. ids narrows it to some of them.
func (b *Book) Matching(ctx context.Context, f DeliveryFilter, ids []int64, limit int) ([]int64, error) {
	if now := b.db.Now(); f.To == 0 || f.To > now {
		f.To = now + time.Second.Microseconds() // ids may run ahead of the clock
	}
	m, err := b.matchDeliveries(ctx, &f)
	if err != nil || m == nil {
		return nil, err
	}
	if ids != nil {
		m.add("d.id IN (?)", bun.List(ids))
	}
	if m.gathered {
		if ids == nil && len(m.ids) > limit {
			return m.ids[:limit+1], nil
		}
		m.add("d.id IN (?)", bun.List(m.ids))
	}
	w := f.window()
	var all []int64
	q := m.apply(b.db.Read.NewSelect().TableExpr("deliveries AS d").Column("d.id").Join("LEFT JOIN orders AS o ON o.id = d.subject_id"))
	err = q.Where("d.id BETWEEN ? AND ?", w.low, w.high).OrderExpr("d.id").Limit(int64(limit)+1).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("read all that match: %w", err)
	}
	return all, nil
}
