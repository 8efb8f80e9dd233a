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

// Since is the name in settings of the id below which notifications of orders are past their
// retention and may have been deleted.
const Since = "notifications_since"

// Event is one event to be notified, with its body frozen when it happened. The compare-and-set
// on its subject makes it unique. An event with a single delivery, to the merchant, is stored
// in that delivery.
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
	ToSubscriber bool   `bun:"to_subscriber"` // kind of recipient
	SubjectID    int64  `bun:"subject_id"`
	EventType    string `bun:"event_type"`
	Channel      string `bun:"channel"`
	URL          string `bun:"url"`      // the order's own; empty = the recipient's
	Endpoint     string `bun:"endpoint"` // the only one; empty = those of the channel in turn
	Status       Status `bun:"status"`
	Attempts     int64  `bun:"attempts"`
	// ScheduleFrom is the number of attempts made before an operator resent it; the schedule
	// counts from there.
	ScheduleFrom int64 `bun:"schedule_from"`
	// NextAt is the due time, or the end of the lease while sending; nil = over, or created as
	// claimed, in which case LeaseUntil holds the lease (Due returns either).
	NextAt     *int64 `bun:"next_at"`
	LeaseUntil *int64 `bun:"lease_until"`
	LeaseOwner int64  `bun:"lease_owner"`
	LastClass  Class  `bun:"last_class"`
	LastError  string `bun:"last_error"`
	CreatedAt  int64  `bun:"created_at"`
	FinishedAt *int64 `bun:"finished_at"`
	Currency   string `bun:"currency"` // of Amount; empty = no money involved
	Amount     int64  `bun:"amount"`   // minor units
	// Trace is the W3C traceparent of its cause; empty = not traced.
	Trace string `bun:"trace,nullzero"`
	// Shared means that the event has several deliveries owed to the merchant: their money
	// counts once, until the last of them has ended.
	Shared bool `bun:"shared"`
	// Counted means that report.Orders counts the event.
	Counted bool `bun:"counted"`
	// EventVersion and Body belong to the event, which is stored here if it has one delivery;
	// both then have the same id, and events has no row.
	EventVersion *int64 `bun:"version"`
	Body         string `bun:"body,nullzero"`
}

// ListColumns are a Delivery's columns (alias d) for lists: all but the event's body.
const ListColumns = "d.id, d.event_id, d.recipient_id, d.to_subscriber, d.subject_id, d.event_type, d.channel, d.url, d.endpoint, d.status, d.attempts," +
	" d.schedule_from, d.next_at, d.lease_until, d.lease_owner, d.last_class, d.last_error, d.created_at, d.finished_at, d.currency, d.amount, d.trace, d.shared, d.counted"

// AllEvents selects all events, wherever they are stored. As with AllAttempts, do not use it in
// a correlated subquery: SQLite would scan all rows each time.
const AllEvents = "(SELECT id, merchant_id, subject_id, type, version, body, created_at FROM events" +
	" UNION ALL SELECT id, merchant_id, subject_id, type, version, body, created_at FROM delivery_events)"

// AllAttempts selects all attempts; a delivery's first attempt is stored in the delivery.
const AllAttempts = "(SELECT " + attemptColumns + " FROM notify_attempts UNION ALL SELECT " + attemptColumns + " FROM first_attempts)"

const attemptColumns = "id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node," +
	" request_header, response_header, response_body, error"

// Recipient returns the recipient of the delivery.
func (d *Delivery) Recipient() recipient.Recipient {
	return recipient.Of(d.RecipientID, d.ToSubscriber)
}

// Due returns when something is next done about the delivery (Unix µs): its due time, or the
// end of its lease while it is being sent; nil = over.
func (d *Delivery) Due() *int64 {
	if d.NextAt == nil && d.Status == Sending {
		return d.LeaseUntil
	}
	return d.NextAt
}

// Attempt is the record of one attempt at a delivery.
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

// Names of the channels, as in merchants' settings.
const (
	Webhook   = merchant.WebhookChannel
	Websocket = "websocket"
	AMQP      = "amqp"
	Kafka     = "kafka"
	Email     = "email"
	SMS       = "sms"
)

// ChannelNames are the names of all channels.
var ChannelNames = []string{Webhook, Websocket, AMQP, Kafka, Email, SMS}

// Ping is the type of event with which operators test an endpoint.
const Ping = "ping"

// Types are the types of events that can be notified (contract §6).
var Types = []string{
	"order.paid", "order.failed", "order.closed", "payout.succeeded", "payout.failed", "payout.returned", "refund.succeeded",
	"refund.failed",
	"dispute.opened", "dispute.won", "dispute.lost",
}

// Fact is what an event is created from.
type Fact struct {
	MerchantID int64
	SubjectID  int64
	Type       string // "order.paid", …
	Version    int64
	At         int64 // Unix µs
	Routes     []Route
	Currency   string // of the money involved; empty = none
	Amount     int64
	Data       any    // the body's "data"
	Trace      string // parent of the deliveries' spans; empty = not traced
}

// envelope is the notification's body (contract §6).
type envelope struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// Create adds the events and their deliveries to the writes of the facts themselves, and
// returns for each fact what to nudge after the commit. Deliveries that are not to be sent are
// stored as skipped and not nudged. Nor are those for which here, the dispatcher of this
// process, has a slot: they are created as its claims. ctx is the transaction's; here may be
// nil.
func Create(ctx context.Context, w *db.Writes, d *db.DB, here *Dispatcher, facts []Fact) ([][]queue.Nudge, error) {
	x := report.NewDelta(d.Now())
	nudges, err := CreateCounted(ctx, w, d, here, facts, x)
	x.Write(w, d)
	return nudges, err
}

// CreateCounted is Create with the figures of the whole transaction, which the caller writes.
func CreateCounted(ctx context.Context, w *db.Writes, d *db.DB, here *Dispatcher, facts []Fact, x *report.Delta) ([][]queue.Nudge, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	now := d.Now()
	events := make([]Event, 0, len(facts))
	deliveries := make([]Delivery, 0, len(facts))
	nudges := make([][]queue.Nudge, len(facts))
	claims := here.creation(w.Tx())
	for i, f := range facts {
		id := d.NewID()
		body, err := json.Marshal(envelope{ID: PublicID(f.SubjectID, f.Type), Type: f.Type, Timestamp: Stamp(f.At), Data: f.Data})
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
			if to.NextAt != nil && *to.NextAt <= now && !claims.claim(&to, string(body)) && *to.NextAt <= now {
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
	return nudges, nil
}

// Stamp formats a time (Unix µs) as in the contract: RFC 3339, UTC, with milliseconds.
func Stamp(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000Z") }

// StampOr is Stamp of a time that may not have come, which is null in JSON.
func StampOr(us *int64) *string {
	if us == nil {
		return nil
	}
	text := Stamp(*us)
	return &text
}

// OrNull returns a text for JSON; an empty one is null.
func OrNull[S ~string](text S) *S {
	if text == "" {
		return nil
	}
	return &text
}

// OfSubject reads an order's deliveries, newest first.
func OfSubject(ctx context.Context, q bun.IDB, subjectID int64) ([]Delivery, error) {
	var rows []Delivery
	err := q.NewSelect().Model(&rows).Where("d.subject_id = ?", subjectID).OrderExpr("d.id DESC").Limit(100).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return rows, nil
}
