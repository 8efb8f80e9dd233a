package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/merchant"
	"backstop/internal/recipient"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Since is the name in settings of the id before which the notifications of orders are past
// their retention: the clean-up may have removed them.
const Since = "notifications_since"

// Event is one fact to be notified, with its body frozen when the fact happened. The
// compare-and-set of its subject makes it once. One with a single delivery, to the
// merchant, is stored in that delivery.
type Event struct {
	bun.BaseModel `bun:"table:events,alias:e"`

	ID         int64  `bun:"id,pk"`
	MerchantID int64  `bun:"merchant_id"`
	SubjectID  int64  `bun:"subject_id"` // the order
	Type       string `bun:"type"`
	Version    int64  `bun:"version"` // the order's version
	Body       string `bun:"body"`
	CreatedAt  int64  `bun:"created_at"`
}

// Delivery is one event for one recipient over one channel or endpoint.
type Delivery struct {
	bun.BaseModel `bun:"table:deliveries,alias:d"`

	ID           int64  `bun:"id,pk"`
	EventID      int64  `bun:"event_id"`
	RecipientID  int64  `bun:"recipient_id"`
	ToSubscriber bool   `bun:"to_subscriber"` // the kind of the recipient
	SubjectID    int64  `bun:"subject_id"`
	EventType    string `bun:"event_type"`
	Channel      string `bun:"channel"`
	URL          string `bun:"url"`      // the order's own; empty = the recipient's
	Endpoint     string `bun:"endpoint"` // the only one; empty = those of the channel in turn
	Status       Status `bun:"status"`
	Attempts     int64  `bun:"attempts"`
	// ScheduleFrom is how many attempts there were when an operator sent it again: the
	// schedule counts from there.
	ScheduleFrom int64 `bun:"schedule_from"`
	// NextAt is the due time, or the lease's end while sending; nil = over, or created as
	// claimed, which has LeaseUntil instead (Due is either).
	NextAt     *int64 `bun:"next_at"`
	LeaseUntil *int64 `bun:"lease_until"`
	LeaseOwner int64  `bun:"lease_owner"`
	LastClass  Class  `bun:"last_class"`
	LastError  string `bun:"last_error"`
	CreatedAt  int64  `bun:"created_at"`
	FinishedAt *int64 `bun:"finished_at"`
	Currency   string `bun:"currency"` // of the money that it is about; empty = none
	Amount     int64  `bun:"amount"`   // minor units
	// Trace is the W3C traceparent of its cause; empty = not traced.
	Trace string `bun:"trace,nullzero"`
	// Shared is set where the event has several deliveries that are owed to the merchant:
	// their money counts once, until the last of them is over.
	Shared bool `bun:"shared"`
	// Counted is set where report.Orders counts the event.
	Counted bool `bun:"counted"`
	// EventVersion and Body are the event's, which is stored here where it has one
	// delivery; then both have one id, and no row is in events.
	EventVersion *int64 `bun:"version"`
	Body         string `bun:"body,nullzero"`
}

// ListColumns are the columns of a Delivery (alias d) in a list: all but the event's body.
const ListColumns = "d.id, d.event_id, d.recipient_id, d.to_subscriber, d.subject_id, d.event_type, d.channel, d.url, d.endpoint, d.status, d.attempts," +
	" d.schedule_from, d.next_at, d.lease_until, d.lease_owner, d.last_class, d.last_error, d.created_at, d.finished_at, d.currency, d.amount, d.trace, d.shared, d.counted"

// AllEvents are the events for a query, wherever they are stored. As with AllAttempts, not
// for a correlated subquery: SQLite would go through all rows each time.
const AllEvents = "(SELECT id, merchant_id, subject_id, type, version, body, created_at FROM events" +
	" UNION ALL SELECT id, merchant_id, subject_id, type, version, body, created_at FROM delivery_events)"

// AllAttempts are the attempts for a query: the first one of a delivery is stored in it.
const AllAttempts = "(SELECT " + attemptColumns + " FROM notify_attempts UNION ALL SELECT " + attemptColumns + " FROM first_attempts)"

const attemptColumns = "id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node," +
	" request_header, response_header, response_body, error"

// Recipient is whom it is for.
func (d *Delivery) Recipient() recipient.Recipient {
	return recipient.Of(d.RecipientID, d.ToSubscriber)
}

// Due is the moment at which something is next done about the delivery (Unix µs), nil = it
// is over: its due time, or the end of the lease under which it is being sent.
func (d *Delivery) Due() *int64 {
	if d.NextAt == nil && d.Status == Sending {
		return d.LeaseUntil
	}
	return d.NextAt
}

// Attempt is the record of one try of a delivery.
type Attempt struct {
	bun.BaseModel `bun:"table:notify_attempts,alias:na"`

	ID             int64  `bun:"id,pk"`
	DeliveryID     int64  `bun:"delivery_id"`
	RecipientID    int64  `bun:"recipient_id"`
	Number         int64  `bun:"number"`
	URL            string `bun:"url"`
	Class          Class  `bun:"class"`
	HTTPStatus     int    `bun:"http_status"`
	StartedAt      int64  `bun:"started_at"`
	TookUS         int64  `bun:"took_us"`
	Node           string `bun:"node"`
	RequestHeader  string `bun:"request_header"`
	ResponseHeader string `bun:"response_header"`
	ResponseBody   []byte `bun:"response_body"`
	Error          string `bun:"error"`
}

// Names of the channels, as merchants choose them.
const (
	Webhook   = merchant.WebhookChannel
	Websocket = "websocket"
	AMQP      = "amqp"
	Kafka     = "kafka"
	Email     = "email"
	SMS       = "sms"
)

// Ping is the type of event by which operators try an endpoint.
const Ping = "ping"

// Types are the events that may be notified (contract §6).
var Types = []string{
	"order.paid", "order.failed", "order.closed", "payout.succeeded", "payout.failed", "refund.succeeded", "refund.failed",
}

// Fact is what an event is created of.
type Fact struct {
	MerchantID int64
	SubjectID  int64
	Type       string // "order.paid", …
	Version    int64
	At         int64 // Unix µs
	Routes     []Route
	Currency   string // of the money that it is about; empty = none
	Amount     int64
	Data       any    // the body's "data"
	Trace      string // the parent of the deliveries' spans; empty = not traced
}

// envelope is the notification's body (contract §6).
type envelope struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// Create adds the events and their deliveries to the writes of the facts themselves, and
// returns for each fact what to nudge after the commit. What is not sent is stored as
// skipped and not nudged; nor is what here, the dispatcher of this process, has a slot for:
// it is created as its claim. ctx is that of the transaction; here may be nil.
func Create(ctx context.Context, w *db.Writes, d *db.DB, here *Dispatcher, facts []Fact) ([][]queue.Nudge, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	now := d.Now()
	x := report.NewDelta(now)
	events := make([]Event, 0, len(facts))
	deliveries := make([]Delivery, 0, len(facts))
	nudges := make([][]queue.Nudge, len(facts))
	claims := here.creation(w.Tx())
	for i, f := range facts {
		id := d.NewID()
		body, err := json.Marshal(envelope{ID: publicID(f.SubjectID, f.Type), Type: f.Type, Timestamp: Stamp(f.At), Data: f.Data})
		if err != nil {
			return nil, fmt.Errorf("freeze %s: %w", f.Type, err)
		}
		single := len(f.Routes) == 1 && !f.Routes[0].To.IsSubscriber()
		if !single {
			events = append(events, Event{
				ID: id, MerchantID: f.MerchantID, SubjectID: f.SubjectID, Type: f.Type, Version: f.Version,
				Body: string(body), CreatedAt: now,
			})
		}
		owed := 0 // deliveries to the merchant
		for _, r := range f.Routes {
			if !r.To.IsSubscriber() && r.Skip == "" {
				owed++
			}
		}
		if owed > 0 {
			x.Unnotified(f.MerchantID, f.Currency, 1, f.Amount)
			if f.Currency != "" {
				x.Raised(now, f.Currency, f.Amount)
			}
		}
		for _, r := range f.Routes {
			to := r.delivery(&f, now)
			to.ID, to.EventID, to.Shared = id, id, owed > 1 && !to.ToSubscriber
			if single {
				to.EventVersion, to.Body = &f.Version, string(body)
			} else {
				to.ID = d.NewID()
			}
			to.Counted = to.NextAt != nil && to.Currency != ""
			if to.NextAt != nil && *to.NextAt <= now && !claims.claim(&to, string(body)) {
				nudges[i] = append(nudges[i], queue.Nudge{Delivery: to.ID, Recipient: to.RecipientID})
			}
			deliveries = append(deliveries, to)
		}
	}
	if len(events) > 0 {
		w.Insert(&events, "")
	}
	if len(deliveries) > 0 {
		w.Insert(&deliveries, "")
	}
	x.Write(w, d)
	return nudges, nil
}

// Stamp writes a moment (Unix µs) as in the contract: RFC 3339, UTC, to the millisecond.
func Stamp(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000Z") }

// OfSubject reads an order's deliveries, newest first.
func OfSubject(ctx context.Context, q bun.IDB, subjectID int64) ([]Delivery, error) {
	var rows []Delivery
	err := q.NewSelect().Model(&rows).Where("d.subject_id = ?", subjectID).OrderExpr("d.id DESC").Limit(100).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return rows, nil
}
