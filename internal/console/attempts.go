package console

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// AttemptFilter asks for attempts of notifications. Empty fields do not filter.
type AttemptFilter struct {
	OrderNo    string
	Merchant   string // code, also of one of the house's systems
	Class      string
	HTTPStatus int
	From, To   int64 // when the attempt was over, Unix µs; To is left out itself
	Before     int64
	Limit      int
}

// Attempt is one try to tell a merchant, without what was sent and answered.
type Attempt struct {
	ID         int64        `bun:"id"`
	EventID    int64        `bun:"event_id"`
	PublicID   string       `bun:"-"` // the notification's
	EventType  string       `bun:"event_type"`
	OrderNo    string       `bun:"order_no"`
	Merchant   string       `bun:"merchant"`
	Number     int64        `bun:"number"`
	URL        string       `bun:"url"`
	Class      notify.Class `bun:"class"`
	HTTPStatus int          `bun:"http_status"`
	StartedAt  int64        `bun:"started_at"`
	TookUS     int64        `bun:"took_us"`
	Node       string       `bun:"node"`
	Error      string       `bun:"error"`
}

// AttemptPage is one page of attempts; Next is where the next one begins, 0 =
// there is none.
type AttemptPage struct {
	Rows []Attempt
	Next int64
}

// Attempts is one page of attempts, newest first. Ids grow with time, so that a
// span of time is a range of the primary key.
func (b *Book) Attempts(ctx context.Context, f AttemptFilter) (AttemptPage, error) {
	q := b.db.Read.NewSelect().TableExpr("notify_attempts AS na").
		ColumnExpr("na.id, na.number, na.url, na.class, na.http_status, na.started_at, na.took_us, na.node, na.error").
		ColumnExpr("coalesce(d.event_id, 0) AS event_id, coalesce(d.event_type, '') AS event_type, coalesce(o.order_no, '') AS order_no").
		ColumnExpr("coalesce((SELECT m.code FROM merchants AS m WHERE m.id = na.merchant_id), (SELECT s.code FROM subscriptions AS s WHERE s.id = na.merchant_id), '') AS merchant").
		Join("LEFT JOIN deliveries AS d ON d.id = na.delivery_id").Join("LEFT JOIN orders AS o ON o.id = d.subject_id").
		Where("na.id >= ? AND na.id < ?", db.IDAt(f.From), db.IDAt(f.To)).OrderExpr("na.id DESC").Limit(int64(f.Limit) + 1)
	var floor int64
	switch {
	case f.OrderNo != "":
		ids, err := b.deliveriesOf(ctx, f.OrderNo)
		if err != nil || len(ids) == 0 {
			return AttemptPage{}, err
		}
		q = q.Where("na.delivery_id IN (?)", bun.List(ids))
	case f.Merchant != "" || f.Class != "" || f.HTTPStatus != 0:
		var err error
		if floor, err = b.attemptsFloor(ctx, f); err != nil {
			return AttemptPage{}, err
		}
		q = q.Where("na.id >= ?", floor)
	}
	if f.Merchant != "" {
		id, err := b.ToldID(ctx, f.Merchant)
		if err != nil {
			return AttemptPage{}, err
		}
		q = q.Where("na.merchant_id = ?", id)
	}
	if f.Class != "" {
		q = q.Where("na.class = ?", f.Class)
	}
	if f.HTTPStatus != 0 {
		q = q.Where("na.http_status = ?", f.HTTPStatus)
	}
	if f.Before > 0 {
		q = q.Where("na.id < ?", f.Before)
	}
	var rows []Attempt
	if err := q.Scan(ctx, &rows); err != nil {
		return AttemptPage{}, fmt.Errorf("read attempts: %w", err)
	}
	for i := range rows {
		rows[i].mask()
	}
	page := AttemptPage{Rows: rows, Next: floor}
	if len(rows) > f.Limit {
		page = AttemptPage{Rows: rows[:f.Limit], Next: rows[f.Limit-1].ID}
	}
	events := make([]int64, len(page.Rows))
	for i := range page.Rows {
		events[i] = page.Rows[i].EventID
	}
	ids, err := notify.IDsOf(ctx, b.db.Read, events)
	for i := range page.Rows {
		page.Rows[i].PublicID = ids[page.Rows[i].EventID]
	}
	return page, err
}

// deliveriesOf finds an order's deliveries; an order has few.
func (b *Book) deliveriesOf(ctx context.Context, orderNo string) ([]int64, error) {
	var ids []int64
	err := b.db.Read.NewRaw("SELECT d.id FROM deliveries AS d WHERE d.subject_id = (SELECT o.id FROM orders AS o WHERE o.order_no = ?)"+
		" ORDER BY d.id DESC LIMIT 100", orderNo).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find an order's deliveries: %w", err)
	}
	return ids, nil
}

// attemptsFloor is the oldest id that a page with a filter may look at, 0 where
// the span of time ends earlier.
func (b *Book) attemptsFloor(ctx context.Context, f AttemptFilter) (int64, error) {
	to := db.IDAt(f.To)
	if f.Before > 0 {
		to = min(to, f.Before)
	}
	var at []int64
	err := b.db.Read.NewRaw("SELECT id FROM notify_attempts WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
		db.IDAt(f.From), to, scanRows-1).Scan(ctx, &at)
	if err != nil {
		return 0, fmt.Errorf("find the end of a page of attempts: %w", err)
	}
	if len(at) == 0 {
		return 0, nil
	}
	return at[0], nil
}
