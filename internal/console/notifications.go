package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// DeliveryList declares the list of notifications.
var DeliveryList = list.New(list.Spec{
	Name: "notifications",
	Sources: []list.Source{{
		Table: "deliveries", Alias: "d", Columns: deliveryColumns, Joins: deliveryJoins, Key: "id", MerchantColumn: "d.recipient_id",
		Money: list.Money{Minor: deliveryMinor, Currency: deliveryCode},
		Cause: deliveryCause,
	}},
	SumRows:    5000, // each may have to look up its order
	CauseField: "cause",
	Fields: []list.Field{
		{Name: "no", Match: func(ctx context.Context, in list.Lookup, no string) (list.Match, error) {
			ids, err := subjectsOf(ctx, in.Read, no)
			return list.Match{Where: "d.subject_id IN (?)", Args: []any{bun.List(ids)}, None: len(ids) == 0, Indexed: true, AnyAge: true}, err
		}},
		{Name: "status", Match: matchStatus, Values: DeliveryStates},
		{Name: "type", Column: "event_type", Values: notify.Types},
		{Name: "merchant", Match: coded("merchants", "d.recipient_id"), Suggest: codes("merchants", "name")},
		{Name: "supplier", Match: ofOrdersAt, Suggest: codes("suppliers", "name")},
		{Name: "cause", Column: "last_class", Values: names(notify.Causes()...)},
		amountOf(&list.Money{Minor: deliveryMinor, Currency: deliveryCode}),
		atRisk("deliveries", func(r report.Rows) list.Match {
			return list.Match{Where: r.Where, Args: r.Args, AnyAge: true, Candidates: report.OpenDeliveries}
		}),
	},
})

// ofOrdersAt matches the notifications about a supplier's orders. Whatever else is filtered comes
// first: a supplier has most of all orders.
func ofOrdersAt(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
	id, err := idOf(ctx, in.Read, "suppliers", code)
	return list.Match{
		Where: "(SELECT x.supplier_id FROM orders AS x WHERE x.id = d.subject_id) = ?", Args: []any{id}, None: id == 0,
	}, err
}

// Parked is the status of notifications that wait for their recipient's breaker.
const Parked = "parked"

// DeliveryStates are the statuses by which notifications are filtered.
var DeliveryStates = append(names(notify.Queued, notify.Sending, notify.RetryWait, notify.Delivered, notify.Exhausted, notify.Skipped),
	Parked)

func matchStatus(_ context.Context, _ list.Lookup, status string) (list.Match, error) {
	if status == Parked {
		return list.Match{
			Where: notify.Moves.In("d.status", notify.Queued, notify.RetryWait) +
				" AND d.recipient_id IN (SELECT b.owner_id FROM breakers AS b WHERE b.state <> ?)",
			Args: []any{breaker.Closed}, Candidates: report.OpenDeliveries,
		}, nil
	}
	m := list.Match{Where: "d.status = ?", Args: []any{status}}
	switch notify.Status(status) {
	case notify.Queued, notify.Sending, notify.RetryWait:
		m.Candidates = report.OpenDeliveries
	}
	return m, nil
}

// Delivery is one line of the list of notifications.
type Delivery struct {
	notify.Delivery `bun:",extend"`

	OrderNo  string `bun:"order_no"`
	Amount   int64  `bun:"money"`
	Currency string `bun:"money_currency"`
	Merchant string `bun:"merchant"`
	// Result of the last attempt; 0 = none.
	HTTPStatus int   `bun:"-"`
	TookUS     int64 `bun:"-"`
	// Parked means that it waits for its merchant's breaker.
	Parked bool `bun:"-"`
	// PublicID is the notification's id; set only for rows that a page shows.
	PublicID string `bun:"-"`
}

// The money is the notification's while it is at risk, otherwise that of the order, refund, payout or
// dispute that it is about.
const (
	deliveryAmount   = "CASE WHEN d.currency <> '' THEN d.amount ELSE COALESCE(o.amount, " + fundAmount + ", 0) END"
	deliveryCurrency = "COALESCE(NULLIF(d.currency, ''), o.currency, " + fundCurrency + ", '')"
	deliveryColumns  = notify.ListColumns +
		", COALESCE(o.order_no, (SELECT r.order_no FROM refunds AS r WHERE r.id = d.subject_id), (SELECT dp.order_no FROM disputes AS dp WHERE dp.id = d.subject_id), '') AS order_no," +
		" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = d.recipient_id), (SELECT s.code FROM subscriptions AS s WHERE s.id = d.recipient_id), '') AS merchant," +
		deliveryAmount + " AS money, " + deliveryCurrency + " AS money_currency"
	deliveryJoins = "LEFT JOIN orders AS o ON o.id = d.subject_id"

	fundAmount = "(SELECT r.amount FROM refunds AS r WHERE r.id = d.subject_id), (SELECT p.amount FROM payouts AS p WHERE p.id = d.subject_id)," +
		" (SELECT dp.amount FROM disputes AS dp WHERE dp.id = d.subject_id)"
	fundCurrency = "(SELECT r.currency FROM refunds AS r WHERE r.id = d.subject_id), (SELECT p.currency FROM payouts AS p WHERE p.id = d.subject_id)," +
		" (SELECT dp.currency FROM disputes AS dp WHERE dp.id = d.subject_id)"
)

// The same for the totals and the filter, which are read without joins.
const (
	deliveryMinor = "CASE WHEN d.currency <> '' THEN d.amount ELSE COALESCE((SELECT w.amount FROM orders AS w WHERE w.id = d.subject_id), " +
		fundAmount + ", 0) END"
	deliveryCode = "COALESCE(NULLIF(d.currency, ''), (SELECT w.currency FROM orders AS w WHERE w.id = d.subject_id), " + fundCurrency + ", '')"
)

// deliveryCause is why the last attempt failed; one that waits or is parked has it until it
// succeeds. What was never meant to be sent has not failed.
const deliveryCause = "CASE WHEN d.last_class IN ('" + string(notify.OK) + "', '" + string(notify.NoAddress) + "', '" +
	string(notify.SwitchedOff) + "', '" + string(notify.Shadow) + "', '" + string(notify.Resent) + "') THEN '' ELSE d.last_class END"

// Deliveries reads one page of notifications.
func (b *Reader) Deliveries(ctx context.Context, q list.Query, s list.Slice) (list.Page[Delivery], error) {
	page, err := list.Read(ctx, b.db, q, s, func(d *Delivery) int64 { return d.ID })
	if err != nil {
		return page, err
	}
	for i := range page.Rows {
		d := &page.Rows[i]
		d.PublicID, d.Parked = d.Delivery.PublicID(), b.holds(&d.Delivery)
		maskerOf(d.OrderNo).delivery(&d.Delivery)
	}
	return page, b.addLast(ctx, page.Rows)
}

// holds reports whether a delivery is parked.
func (b *Reader) holds(d *notify.Delivery) bool {
	return d.Status.Waiting() && b.isParked(d.Recipient())
}

func (b *Reader) selectDeliveries(rows *[]Delivery) *bun.SelectQuery {
	return b.db.Read.NewSelect().Model(rows).ColumnExpr(deliveryColumns).Join(deliveryJoins)
}

// addLast reads the last attempts of a page of notifications in one query.
func (b *Reader) addLast(ctx context.Context, rows []Delivery) error {
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
	for _, read := range []string{
		"SELECT delivery_id, http_status, took_us FROM first_attempts WHERE id IN (?)",
		"SELECT na.delivery_id, na.http_status, na.took_us FROM notify_attempts AS na WHERE na.delivery_id IN (?)" +
			" AND na.id = (SELECT max(l.id) FROM notify_attempts AS l WHERE l.delivery_id = na.delivery_id)",
	} {
		var last []notify.Attempt
		if err := b.db.Read.NewRaw(read, bun.List(tried)).Scan(ctx, &last); err != nil {
			return fmt.Errorf("read the last attempts: %w", err)
		}
		for _, a := range last {
			rows[at[a.DeliveryID]].HTTPStatus, rows[at[a.DeliveryID]].TookUS = a.HTTPStatus, a.TookUS
		}
	}
	return nil
}

// AttemptList declares the log of attempts.
var AttemptList = list.New(list.Spec{
	Name:    "attempts",
	Sources: []list.Source{attemptsIn("first_attempts"), attemptsIn("notify_attempts")},
	Fields: []list.Field{
		{Name: "order_no", Match: func(ctx context.Context, in list.Lookup, no string) (list.Match, error) {
			ids, err := deliveriesOf(ctx, in.Read, no)
			return list.Match{Where: "na.delivery_id IN (?)", Args: []any{bun.List(ids)}, None: len(ids) == 0, Indexed: true}, err
		}},
		{Name: "merchant", Match: func(ctx context.Context, in list.Lookup, code string) (list.Match, error) { // or a subscriber
			id, err := recipientID(ctx, in.Read, code)
			return list.Match{Where: "na.recipient_id = ?", Args: []any{id}, None: id == 0}, err
		}},
		{Name: "class", Column: "class", Values: names(notify.Classes...)},
		{Name: "status", Column: "http_status", Check: func(text string) string {
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

// maxSubjects bounds the refunds, and the disputes, of one order whose notifications are found.
const maxSubjects = 200

// subjectsOf finds what an order's notifications are about: the order, and its newest refunds and disputes.
func subjectsOf(ctx context.Context, q bun.IDB, orderNo string) (ids []int64, err error) {
	var order int64
	err = q.NewRaw("SELECT o.id FROM orders AS o WHERE o.order_no = ?", orderNo).Scan(ctx, &order)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	for _, query := range []string{
		"SELECT id FROM refunds WHERE order_id = ? AND order_id <> 0 ORDER BY id DESC LIMIT ?",
		"SELECT id FROM disputes WHERE order_id = ? AND order_id <> 0 ORDER BY id DESC LIMIT ?",
	} {
		if err == nil {
			var of []int64
			err = q.NewRaw(query, order, maxSubjects).Scan(ctx, &of)
			ids = append(ids, of...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find what an order's notifications are about: %w", err)
	}
	return append(ids, order), nil
}

// deliveriesOf finds the newest deliveries about an order, its refunds and its disputes.
func deliveriesOf(ctx context.Context, q bun.IDB, orderNo string) (ids []int64, err error) {
	subjects, err := subjectsOf(ctx, q, orderNo)
	if err != nil || len(subjects) == 0 {
		return nil, err
	}
	err = q.NewRaw("SELECT d.id FROM deliveries AS d WHERE d.subject_id IN (?) ORDER BY d.id DESC LIMIT 1000", bun.List(subjects)).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("find an order's deliveries: %w", err)
	}
	return ids, nil
}

// Notification is one notification with its attempts, oldest first.
type Notification struct {
	Delivery
	Body     string // as sent to the merchant
	Attempts []notify.Attempt
	Cut      bool // there are more attempts
	Resend   *Resend
}

// Mask hides personal data in the merchant's responses.
func (n *Notification) Mask() {
	m := maskerOf(n.OrderNo)
	m.delivery(&n.Delivery.Delivery)
	for i := range n.Attempts {
		m.attempt(&n.Attempts[i])
	}
}

// Which is one of the deliveries of a notification: others may subscribe to its event, and several
// channels have the same one. The zero Which is the merchant's newest.
type Which struct {
	Delivery int64  // its id; 0 = any
	Channel  string // "" = any
}

// Notification reads the notification with a public id. Errors: act.ErrNotFound.
func (b *Reader) Notification(ctx context.Context, id string, which Which) (*Notification, error) {
	event, err := notify.FindEvent(ctx, b.db.Read, id)
	if errors.Is(err, notify.ErrNoDelivery) {
		return nil, act.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	var rows []Delivery
	q := b.selectDeliveries(&rows).Where("d.event_id = ? AND d.subject_id = ?", event.ID, event.SubjectID)
	if which.Delivery != 0 {
		q = q.Where("d.id = ?", which.Delivery)
	}
	if which.Channel != "" {
		q = q.Where("d.channel = ?", which.Channel)
	}
	if err := q.OrderExpr("d.to_subscriber, d.id DESC").Limit(1).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a notification: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	n := &Notification{Delivery: rows[0], Body: event.Body}
	n.PublicID = id
	if n.Resend, err = b.resend(ctx, id, &n.Delivery.Delivery); err != nil {
		return nil, err
	}
	err = b.db.Read.NewSelect().Model(&n.Attempts).ModelTableExpr(notify.AllAttempts+" AS na").Where("na.delivery_id = ?",
		n.ID).OrderExpr("na.id").Limit(detailRows + 1).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read a notification's attempts: %w", err)
	}
	n.Body = notify.ShownBody(n.EventType, n.Body)
	n.Parked = b.holds(&n.Delivery.Delivery)
	n.Cut = len(n.Attempts) > detailRows
	n.Attempts = n.Attempts[:min(len(n.Attempts), detailRows)]
	return n, nil
}
