package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
)

// Bounds of one story: a supplier may send for days.
const (
	storyRows    = 200     // of each kind of event
	callbackEnds = 100     // of callbacks, this many from each end
	countedRows  = 10_000  // how far what is left out is counted
	storyBytes   = 1 << 20 // of callbacks' bodies, for a page
	// evidenceBytes of raw texts, as JSON writes them: with all else a file stays below
	// 8 MiB.
	evidenceBytes = 6 << 20
)

// Phase is which kind of event an item of a story is.
type Phase string

// Phases.
const (
	PaymentPhase   Phase = "payment"  // callbacks and the order's status
	DeliveryPhase  Phase = "delivery" // the merchant is told
	ExceptionPhase Phase = "exception"
	PeoplePhase    Phase = "people"
	PlanPhase      Phase = "plan"
)

// Phases lists all phases as a page offers them.
var Phases = []Phase{PaymentPhase, DeliveryPhase, ExceptionPhase, PeoplePhase, PlanPhase}

// Item is one event of a story; the one field of its phase is set.
type Item struct {
	At        int64 // Unix µs
	Phase     Phase
	Callback  *Callback
	Move      *order.History
	Queued    *notify.Delivery // the notification was written
	Attempt   *notify.Attempt
	Exception *exception.Item // it was opened
	Settled   *exception.Item // it came to its end
	Breaker   *breaker.Change // of the merchant's, while the order's notifications were open
	Act       *audit.Row
	Plan      *Plan
}

// Callback is one authentic callback with all that it brought.
type Callback struct {
	ID         int64           `bun:"id"`
	Supplier   string          `bun:"supplier"`
	TradeNo    string          `bun:"trade_no"`
	Outcome    string          `bun:"outcome"`
	ReceivedAt int64           `bun:"received_at"`
	RemoteAddr string          `bun:"remote_addr"`
	Method     string          `bun:"method"`
	Query      string          `bun:"query"`
	Headers    string          `bun:"headers"`
	Body       []byte          `bun:"body"`
	RawSteps   json.RawMessage `bun:"steps"`
	Steps      []supplier.Step `bun:"-"`

	Size       int64  `bun:"size"`         // bytes of the body
	Omitted    bool   `bun:"-"`            // the body was not read: the story is long
	Seen       int64  `bun:"seen"`         // how often the same message came again
	LastSeenAt int64  `bun:"last_seen_at"` // Unix µs; 0 = it did not
	LastAddr   string `bun:"last_addr"`
	sum        string // SHA-256 of the body, of evidence
}

// LeftOut counts what a story does not show.
type LeftOut struct {
	Callbacks     int64 // between the oldest and the newest ones
	MoreCallbacks bool  // there are even more
	Bodies        int64 // callbacks that are shown without their body
	Bytes         int64 // of those
}

// StockLine is what the order holds of one SKU.
type StockLine struct {
	SKU      string `bun:"sku"`
	Quantity int64  `bun:"quantity"`
}

// Story is everything that happened to one order, and what will.
type Story struct {
	Order      *order.Order
	Merchant   Named
	Supplier   Named
	AckText    string // the body that the merchant answers to say that it knows; "" = any
	Items      []Item // by time, plans last
	Stock      []StockLine
	Deliveries []notify.Delivery // newest first
	Parked     map[int64]bool    // the deliveries that wait for a breaker
	Bodies     map[int64]string  // what merchants are sent, by event, as it was frozen
	Exceptions []exception.Item
	Transfers  []ledger.Line // of the order's money, oldest first
	Told       string        // notify_status
	Resend     *Resend       // what a person would send again; nil = nothing
	Resent     *Resent       // what somebody has; nil = nobody has
	Why        Why
	// Cut says that there is more of one kind than a story shows.
	Cut  bool
	Left LeftOut
}

// Story reads one order's story for a page. Errors: ErrNotFound.
func (b *Reader) Story(ctx context.Context, orderNo string) (*Story, error) {
	return b.story(ctx, orderNo, b.addRaw)
}

// WholeStory reads one order's story for evidence. Errors: ErrNotFound.
func (b *Reader) WholeStory(ctx context.Context, orderNo string) (*Story, error) {
	return b.story(ctx, orderNo, b.addSums)
}

func (b *Reader) story(ctx context.Context, orderNo string, raw func(context.Context, *Story) error) (*Story, error) {
	o, err := order.ByNo(ctx, b.db.Read, orderNo)
	if errors.Is(err, order.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	s := &Story{Order: o}
	for _, read := range []func(context.Context, *Story) error{
		b.addNames, b.addStock, b.addCallbacks, raw, b.addHistory, b.addDeliveries, b.addBodies, b.addAttempts, b.addBreaker, b.addExceptions,
		b.addTransfers, b.addActs, b.addResend, b.addResent,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	s.Told = notify.OrderStatus(s.Deliveries, b.isParked(recipient.OfMerchant(o.MerchantID)))
	b.explain(s)
	return s, nil
}

// PublicID is the id of the notification of one of the story's events.
func (s *Story) PublicID(event int64) string { return notify.IDOf(event, s.Bodies[event]) }

// Callback finds one of the story's callbacks by its id as addresses write it;
// nil = the order has none of this id.
func (s *Story) Callback(id string) *Callback {
	n, err := strconv.ParseInt(id, 36, 64)
	if err != nil {
		return nil
	}
	for _, i := range s.Items {
		if i.Callback != nil && i.Callback.ID == n {
			return i.Callback
		}
	}
	return nil
}

func (b *Reader) addNames(ctx context.Context, s *Story) error {
	var rows []Named
	err := b.db.Read.NewRaw("SELECT id, code, name FROM merchants WHERE id = ? UNION ALL SELECT -id, code, kind FROM suppliers WHERE id = ?",
		s.Order.MerchantID, s.Order.SupplierID).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the order's merchant and supplier: %w", err)
	}
	if m := b.settings.Merchants().ByID(s.Order.MerchantID); m != nil && m.Settings.Ack == "text" {
		s.AckText = m.Settings.AckText
	}
	for _, r := range rows {
		if r.ID == s.Order.MerchantID {
			s.Merchant = r
		} else {
			s.Supplier = r
		}
	}
	return nil
}

func (b *Reader) addStock(ctx context.Context, s *Story) error {
	if !s.Order.HasItems {
		return nil
	}
	err := b.db.Read.NewRaw("SELECT k.sku, oi.quantity FROM order_items AS oi JOIN skus AS k ON k.id = oi.sku_id"+
		" WHERE oi.order_id = ? ORDER BY k.sku LIMIT ?", s.Order.ID, storyRows).Scan(ctx, &s.Stock)
	if err != nil {
		return fmt.Errorf("read the order's items: %w", err)
	}
	return nil
}

func (b *Reader) addHistory(ctx context.Context, s *Story) error {
	var rows []order.History
	err := b.db.Read.NewSelect().Model(&rows).Where("oh.order_id = ?", s.Order.ID).OrderExpr("oh.version").Limit(storyRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the order's history: %w", err)
	}
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].CreatedAt, Phase: PaymentPhase, Move: &rows[i]})
	}
	s.Cut = s.Cut || len(rows) == storyRows
	return nil
}

func (b *Reader) addDeliveries(ctx context.Context, s *Story) (err error) {
	if s.Deliveries, err = notify.OfSubject(ctx, b.db.Read, s.Order.ID); err != nil {
		return err
	}
	s.Parked = map[int64]bool{}
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		s.Parked[d.ID] = b.holds(d)
		s.Items = append(s.Items, Item{At: d.CreatedAt, Phase: DeliveryPhase, Queued: d})
	}
	return nil
}

func (b *Reader) addBodies(ctx context.Context, s *Story) error {
	var rows []notify.Event
	err := b.db.Read.NewSelect().Model(&rows).Where("e.subject_id = ?", s.Order.ID).OrderExpr("e.version").Limit(storyRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the order's events: %w", err)
	}
	s.Bodies = make(map[int64]string, len(rows))
	for _, e := range rows {
		s.Bodies[e.ID] = e.Body
	}
	return nil
}

func (b *Reader) addTransfers(ctx context.Context, s *Story) (err error) {
	s.Transfers, err = ledger.Lines(ctx, b.db.Read, payment.LedgerRefs(s.Order.ID))
	return err
}

func (b *Reader) addAttempts(ctx context.Context, s *Story) error {
	var rows []notify.Attempt
	err := b.db.Read.NewSelect().Model(&rows).
		Where("na.delivery_id IN (SELECT d.id FROM deliveries AS d WHERE d.subject_id = ?)", s.Order.ID).
		OrderExpr("na.id").Limit(storyRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read the order's attempts: %w", err)
	}
	showAttempts(rows)
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].StartedAt, Phase: DeliveryPhase, Attempt: &rows[i]})
	}
	s.Cut = s.Cut || len(rows) == storyRows
	return nil
}

func (b *Reader) addExceptions(ctx context.Context, s *Story) error {
	q := list.Query{Spec: ExceptionList, Scope: list.All()}.With("no", s.Order.OrderNo)
	page, err := list.Read(ctx, b.db, q, list.Slice{Rows: storyRows, Uncounted: true}, func(i *exception.Item) int64 { return i.ID })
	if err != nil {
		return err
	}
	rows := page.Rows
	s.Exceptions = rows
	s.Cut = s.Cut || len(rows) == storyRows
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].OpenedAt, Phase: ExceptionPhase, Exception: &rows[i]})
		if end := rows[i].ResolvedAt; end != nil {
			s.Items = append(s.Items, Item{At: *end, Phase: ExceptionPhase, Settled: &rows[i]})
		}
	}
	return nil
}

// addActs adds what people did about the order and about its exceptions.
func (b *Reader) addActs(ctx context.Context, s *Story) error {
	about := []audit.Query{{Object: "order", ObjectID: s.Order.OrderNo, Limit: storyRows}}
	if len(s.Exceptions) > 0 {
		ids := make([]string, len(s.Exceptions))
		for i, x := range s.Exceptions {
			ids[i] = ExceptionID(x.ID)
		}
		about = append(about, audit.Query{Object: ExceptionObject, ObjectIDs: ids, Limit: storyRows})
	}
	for _, q := range about {
		rows, err := audit.List(ctx, b.db.Read, q)
		if err != nil {
			return err
		}
		for i := range rows {
			s.Items = append(s.Items, Item{At: rows[i].At, Phase: PeoplePhase, Act: &rows[i]})
		}
		s.Cut = s.Cut || len(rows) == storyRows
	}
	return nil
}
