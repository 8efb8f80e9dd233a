package console

import (
	"context"
	"fmt"
	"strconv"

	"backstop/internal/list"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// AttemptList declares the log of attempts.
var AttemptList = list.New(list.Spec{
	Name:    "attempts",
	Sources: []list.Source{attemptsIn("first_attempts"), attemptsIn("notify_attempts")},
	Fields: []list.Field{
		{Word: "order_no", Match: func(ctx context.Context, in list.Lookup, no string) (list.Match, error) {
			ids, err := deliveriesOf(ctx, in.Read, no)
			return list.Match{Where: "na.delivery_id IN (?)", Args: []any{bun.List(ids)}, None: len(ids) == 0, Indexed: true}, err
		}},
		{Word: "merchant", Match: func(ctx context.Context, in list.Lookup, code string) (list.Match, error) { // or a subscriber
			id, err := recipientID(ctx, in.Read, code)
			return list.Match{Where: "na.recipient_id = ?", Args: []any{id}, None: id == 0}, err
		}},
		{Word: "class", Column: "class", Values: names(notify.Classes...)},
		{Word: "status", Column: "http_status", Check: func(text string) string {
			if n, err := strconv.Atoi(text); err != nil || n < 100 || n > 599 {
				return "use an HTTP status code, 100 to 599"
			}
			return ""
		}},
	},
})

func attemptsIn(table string) list.Source {
	return list.Source{
		Table: table, Alias: "na", Key: "id", MerchantColumn: "na.recipient_id",
		Columns: "na.id, na.number, na.url, na.class, na.http_status, na.started_at, na.took_us, na.node, na.error," +
			" coalesce(d.subject_id, 0) AS subject_id, coalesce(d.event_type, '') AS event_type, coalesce(o.order_no, '') AS order_no," +
			" coalesce((SELECT m.code FROM merchants AS m WHERE m.id = na.recipient_id), (SELECT s.code FROM subscriptions AS s WHERE s.id = na.recipient_id), '') AS merchant",
		Joins: "LEFT JOIN deliveries AS d ON d.id = na.delivery_id LEFT JOIN orders AS o ON o.id = d.subject_id",
	}
}

// Attempt is one attempt to notify a merchant, without request and response.
type Attempt struct {
	ID         int64        `bun:"id"`
	SubjectID  int64        `bun:"subject_id"`
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

// Attempts reads one page of attempts.
func (b *Reader) Attempts(ctx context.Context, q list.Query, s list.Slice) (list.Page[Attempt], error) {
	s.Uncounted = true
	page, err := list.Read(ctx, b.db, q, s, func(a *Attempt) int64 { return a.ID })
	if err != nil {
		return page, err
	}
	for i := range page.Rows {
		a := &page.Rows[i]
		a.mask()
		a.PublicID = notify.PublicID(a.SubjectID, a.EventType)
	}
	return page, nil
}

// deliveriesOf finds the newest deliveries of an order; an order has few.
func deliveriesOf(ctx context.Context, q bun.IDB, orderNo string) ([]int64, error) {
	var ids []int64
	err := q.NewRaw("SELECT d.id FROM deliveries AS d WHERE d.subject_id = (SELECT o.id FROM orders AS o WHERE o.order_no = ?)"+
		" ORDER BY d.id DESC LIMIT 1000", orderNo).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find an order's deliveries: %w", err)
	}
	return ids, nil
}
