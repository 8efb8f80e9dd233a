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

// Event is one fact that a merchant is to be told, with its body frozen when the
// fact happened. It is unique per subject, version and type.
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

// Delivery is one event on its way to one merchant over one channel.
type Delivery struct {
	bun.BaseModel `bun:"table:deliveries,alias:d"`

	ID         int64  `bun:"id,pk"`
	EventID    int64  `bun:"event_id"`
	MerchantID int64  `bun:"merchant_id"`
	SubjectID  int64  `bun:"subject_id"`
	EventType  string `bun:"event_type"`
	Channel    string `bun:"channel"`
	URL        string `bun:"url"` // the order's own; empty = the merchant's
	// Endpoint names the one address that this is for; empty = the channel's
	// addresses in turn.
	Endpoint string `bun:"endpoint"`
	Status   Status `bun:"status"`
	Attempts int64  `bun:"attempts"`
	// ScheduleFrom is how many attempts there were when somebody sent it again: the
	// schedule counts from there.
	ScheduleFrom int64  `bun:"schedule_from"`
	NextAt       *int64 `bun:"next_at"` // due time, or the lease's end while sending; nil = over
	LeaseOwner   int64  `bun:"lease_owner"`
	LastClass    Class  `bun:"last_class"`
	LastError    string `bun:"last_error"`
	CreatedAt    int64  `bun:"created_at"`
	FinishedAt   *int64 `bun:"finished_at"`
	Currency     string `bun:"currency"` // of the money that it is about; empty = none
	Amount       int64  `bun:"amount"`   // minor units
	// Trace is the W3C traceparent of who raised it; empty = not traced.
	Trace string `bun:"trace,nullzero"`
	// House says that MerchantID is a subscriber's: see Recipient.
	House bool `bun:"house"`
	// Shared says that the event has several deliveries that the merchant must
	// get: their money counts once, until the last of them is over.
	Shared bool `bun:"shared"`
	// Counted says that the event is among those of which report.Orders is made.
	Counted bool `bun:"counted"`
}

// Recipient is whom it is for.
func (d *Delivery) Recipient() recipient.Recipient { return recipient.Of(d.MerchantID, d.House) }

// Attempt is one try, kept for people.
type Attempt struct {
	bun.BaseModel `bun:"table:notify_attempts,alias:na"`

	ID             int64  `bun:"id,pk"`
	DeliveryID     int64  `bun:"delivery_id"`
	MerchantID     int64  `bun:"merchant_id"`
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

// Ping is the type of event by which people try an address.
const Ping = "ping"

// Types are the events of which a merchant may be told (contract §6).
var Types = []string{
	"order.paid", "order.failed", "order.closed", "payout.succeeded", "payout.failed", "refund.succeeded", "refund.failed",
}

// Fact is what Create needs to tell a merchant something.
type Fact struct {
	MerchantID int64
	SubjectID  int64
	Type       string // "order.paid", …
	Version    int64
	At         int64 // Unix µs
	Routes     []Route
	Currency   string // of the money that the merchant is to be told about; empty = none
	Amount     int64
	Data       any    // the body's "data"
	Trace      string // names the span that the deliveries go on from; empty = not followed
}

// envelope is the notification's body (contract §6).
type envelope struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// earlier is how many events of its type a subject had before: whatever merchants
// are notified of happens once to a subject.
const earlier = 0

// Create gathers the events and their deliveries among the writes of the facts
// themselves, and returns for each fact what to nudge after the commit. What is
// not sent is kept as skipped and nudges nothing; nor does what here, the
// dispatcher of this process, has a slot for: it is created as its claim. ctx is
// that of the transaction; here may be nil.
func Create(ctx context.Context, w *db.Writes, d *db.DB, here *Dispatcher, facts []Fact) ([][]queue.Nudge, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	now := d.Now()
	x := report.NewDelta(now)
	events := make([]Event, len(facts))
	deliveries := make([]Delivery, 0, len(facts))
	nudges := make([][]queue.Nudge, len(facts))
	claims := here.creation(w.Tx())
	for i, f := range facts {
		id := d.NewID()
		body, err := json.Marshal(envelope{ID: publicID(f.SubjectID, f.Type, earlier), Type: f.Type, Timestamp: Stamp(f.At), Data: f.Data})
		if err != nil {
			return nil, fmt.Errorf("freeze %s: %w", f.Type, err)
		}
		events[i] = Event{
			ID: id, MerchantID: f.MerchantID, SubjectID: f.SubjectID, Type: f.Type, Version: f.Version,
			Body: string(body), CreatedAt: now,
		}
		must := 0 // deliveries that the merchant must get
		for _, r := range f.Routes {
			if !r.To.IsSubscriber() && r.Skip == "" {
				must++
			}
		}
		if must > 0 {
			x.Untold(f.MerchantID, f.Currency, 1, f.Amount)
			if f.Currency != "" {
				x.Raised(now, f.Currency, f.Amount)
			}
		}
		for _, r := range f.Routes {
			to := r.delivery(&f, now)
			to.ID, to.EventID, to.Shared = d.NewID(), id, must > 1 && !to.House
			to.Counted = to.NextAt != nil && to.Currency != ""
			if to.NextAt != nil && *to.NextAt <= now && !claims.claim(&to, events[i].Body) {
				nudges[i] = append(nudges[i], queue.Nudge{Delivery: to.ID, Merchant: to.MerchantID})
			}
			deliveries = append(deliveries, to)
		}
	}
	w.Insert(&events, "")
	if len(deliveries) > 0 {
		w.Insert(&deliveries, "")
	}
	x.Write(w, d)
	return nudges, nil
}

// Stamp writes a moment (Unix µs) as the contract wants it: RFC 3339, UTC, to
// the millisecond.
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
