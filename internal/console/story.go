package console

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
)

// Limits of one history: suppliers may resend for days, and merchants fail for days.
const (
	storyEnds   = 100     // events of each kind read, from each end
	stockLines  = 100     // SKUs of an order
	countedRows = 10_000  // up to which left-out events are counted
	storyBytes  = 1 << 20 // callbacks' bodies, on a page
)

// Phase groups the kinds of events in a history.
type Phase string

// Phases.
const (
	PaymentPhase   Phase = "payment"  // callbacks and the order's status
	DeliveryPhase  Phase = "delivery" // the merchant is notified
	RefundPhase    Phase = "refund"
	DisputePhase   Phase = "dispute"
	ExceptionPhase Phase = "exception"
	PeoplePhase    Phase = "people"
	PlanPhase      Phase = "plan"
)

// Phases lists all phases in display order.
var Phases = []Phase{PaymentPhase, DeliveryPhase, RefundPhase, DisputePhase, ExceptionPhase, PeoplePhase, PlanPhase}

// ItemKind is the kind of an item, as named in evidence.
type ItemKind string

// Kinds of items.
const (
	ItemCallback     ItemKind = "callback"
	ItemStatus       ItemKind = "status"       // the order's status changed
	ItemNotification ItemKind = "notification" // a delivery was created
	ItemAttempt      ItemKind = "attempt"
	ItemException    ItemKind = "exception" // an exception was opened
	ItemSettled      ItemKind = "exception_settled"
	ItemBreaker      ItemKind = "breaker" // the merchant's breaker changed
	ItemCall         ItemKind = "call"    // the supplier was called
	ItemAct          ItemKind = "act"     // an operator or a service acted
	ItemProposal     ItemKind = "proposal"
	ItemVerdict      ItemKind = "approval" // a proposal was decided
	ItemRan          ItemKind = "run"      // a decision took effect, or failed
	ItemRefund       ItemKind = "refund"   // the status of one of the order's refunds changed
	ItemDispute      ItemKind = "dispute"  // the status of one of its disputes changed
	ItemPlan         ItemKind = "plan"
)

// ItemKinds lists all kinds in display order.
var ItemKinds = []ItemKind{
	ItemCallback, ItemStatus, ItemNotification, ItemAttempt, ItemException, ItemSettled, ItemBreaker, ItemCall, ItemAct,
	ItemProposal, ItemVerdict, ItemRan, ItemRefund, ItemDispute, ItemPlan,
}

// Item is one event in a history; exactly one field besides the time is set, according to its
// kind.
type Item struct {
	At        int64 // Unix µs
	Phase     Phase
	Callback  *Callback
	Move      *order.History
	Queued    *notify.Delivery
	Attempt   *notify.Attempt
	Exception *exception.Item
	Settled   *exception.Item
	Breaker   *breaker.Change // while the order's notifications were open
	Call      *Call
	Act       *audit.Row
	Proposal  *Decision
	Verdict   *Decision
	Ran       *Decision
	Refund    *RefundMove
	Dispute   *DisputeMove
	Plan      *Plan
}

// Kind returns which field is set.
func (i Item) Kind() ItemKind {
	switch {
	case i.Callback != nil:
		return ItemCallback
	case i.Move != nil:
		return ItemStatus
	case i.Queued != nil:
		return ItemNotification
	case i.Attempt != nil:
		return ItemAttempt
	case i.Exception != nil:
		return ItemException
	case i.Settled != nil:
		return ItemSettled
	case i.Breaker != nil:
		return ItemBreaker
	case i.Call != nil:
		return ItemCall
	case i.Act != nil:
		return ItemAct
	case i.Proposal != nil:
		return ItemProposal
	case i.Verdict != nil:
		return ItemVerdict
	case i.Ran != nil:
		return ItemRan
	case i.Refund != nil:
		return ItemRefund
	case i.Dispute != nil:
		return ItemDispute
	}
	return ItemPlan
}

// Callback is one authentic callback with its full content.
type Callback struct {
	ID         int64          `bun:"id"`
	Supplier   string         `bun:"supplier"`
	TradeNo    string         `bun:"trade_no"`
	Outcome    string         `bun:"outcome"`
	ReceivedAt int64          `bun:"received_at"`
	RemoteAddr string         `bun:"remote_addr"`
	Method     string         `bun:"method"`
	Query      string         `bun:"query"`
	Headers    string         `bun:"headers"`
	Body       []byte         `bun:"body"`
	Steps      supplier.Steps `bun:"steps"`

	Size       int64  `bun:"size"`         // body size in bytes
	Omitted    bool   `bun:"-"`            // the body was not read, because the history is long
	Seen       int64  `bun:"seen"`         // how often the same message was repeated
	LastSeenAt int64  `bun:"last_seen_at"` // last repeat, Unix µs; 0 = none
	LastAddr   string `bun:"last_addr"`
	sum        string // SHA-256 of the body, for evidence
}

// LeftOut counts what a history does not show.
type LeftOut struct {
	Events LeftEvents
	Texts  int64 // of displayed events
	Bytes  int64 // size of these texts
}

// LeftEvents counts left-out events by kind.
type LeftEvents map[ItemKind]LeftCount

// LeftCount is a possibly incomplete count of events.
type LeftCount struct {
	N    int64 `json:"count"`
	More bool  `json:"more,omitempty"` // there are more than N
}

// With returns the counts together with those of the given items.
func (l LeftEvents) With(items []Item) LeftEvents {
	sum := maps.Clone(l)
	if sum == nil {
		sum = LeftEvents{}
	}
	for _, i := range items {
		c := sum[i.Kind()]
		c.N++
		sum[i.Kind()] = c
	}
	return sum
}

// StockLine is the order's reservation of one SKU.
type StockLine struct {
	SKU      string `bun:"sku"`
	Quantity int64  `bun:"quantity"`
}

// Story is everything that has happened to one order, and what will happen.
type Story struct {
	Order        *order.Order
	Merchant     Named
	Supplier     Named
	AckText      string // response body with which the merchant confirms; "" = any
	Items        []Item // by time, plans last
	Stock        []StockLine
	Deliveries   []notify.Delivery  // newest first
	Parked       map[int64]bool     // deliveries waiting for a breaker
	Bodies       map[int64]string   // bodies sent to merchants, by event, as frozen
	Exceptions   []exception.Item   // newest first
	Transfers    []ledger.Line      // of the order's money, oldest first
	Refunds      []*refund.Refund   // oldest first
	Disputes     []*dispute.Dispute // oldest first
	Money        OrderMoney
	NotifyStatus string // notify_status
	// NotifiedSince is the order id below which notifications are past their retention.
	NotifiedSince int64
	Resend        *Resend            // what an operator could resend; nil = nothing
	Resent        *Resent            // the last resend by an operator; nil = none
	Dead          *compensation.Item // the newest dead compensation of the order; nil = none
	Asking        *Asking            // nil = its supplier cannot be queried, or the order is over
	Why           Why
	Left          LeftOut
}

// Story reads one order's history for a page. Errors: order.ErrNotFound.
func (b *Reader) Story(ctx context.Context, orderNo string) (*Story, error) {
	return b.story(ctx, orderNo, b.addRaw)
}

// WholeStory reads one order's history for evidence. Errors: order.ErrNotFound.
func (b *Reader) WholeStory(ctx context.Context, orderNo string) (*Story, error) {
	return b.story(ctx, orderNo, b.addSums)
}

func (b *Reader) story(ctx context.Context, orderNo string, raw func(context.Context, *Story) error) (*Story, error) {
	o, err := order.ByNo(ctx, b.db.Read, orderNo)
	if err != nil {
		return nil, err
	}
	s := &Story{Order: o}
	for _, read := range []func(context.Context, *Story) error{
		b.addNames, b.addMoney, b.addStock, b.addCallbacks, raw, b.addCalls, b.addDead, b.addHistory, b.addDeliveries, b.addAttempts,
		b.addBreaker, b.addExceptions, b.addRefunds, b.addDisputes,
		b.addTransfers, b.addActs, b.addDecisions, b.addResend, b.addResent,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	s.NotifyStatus = notify.OrderStatus(s.Deliveries, b.isParked(recipient.OfMerchant(o.MerchantID)))
	b.explain(s)
	return s, nil
}

// Callback returns the callback with this id, in URL form; nil = the order has none.
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
	err := b.db.Read.NewRaw(
		"SELECT id, code, name FROM merchants WHERE id = ? UNION ALL SELECT -id, code, kind FROM suppliers WHERE id = ?",
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
		" WHERE oi.order_id = ? ORDER BY k.sku LIMIT ?", s.Order.ID, stockLines).Scan(ctx, &s.Stock)
	if err != nil {
		return fmt.Errorf("read the order's items: %w", err)
	}
	return nil
}

// addTransfers adds the order's entries, and those that hold or held money received for it.
func (b *Reader) addTransfers(ctx context.Context, s *Story) error {
	attempts, err := payment.AttemptsOf(ctx, b.db.Read, []int64{s.Order.ID})
	if err != nil {
		return err
	}
	refs := payment.LedgerRefs(s.Order.ID)
	for _, a := range attempts[s.Order.ID] {
		refs = append(refs, payment.HeldRef(a.AccountID, a.SupplierTradeNo, a.Reference()))
	}
	for _, x := range s.Exceptions {
		if x.HeldRef != "" {
			refs = append(refs, x.HeldRef)
		}
	}
	for _, r := range s.Refunds {
		refs = append(refs, booking.Refs(booking.OfRefund, r.ID)...)
	}
	for _, d := range s.Disputes {
		refs = append(refs, booking.Refs(booking.OfDispute, d.ID)...)
	}
	s.Transfers, err = ledger.Lines(ctx, b.db.Read, refs)
	return err
}

// RefundMove is one change of the status of one of the order's refunds.
type RefundMove struct {
	booking.Change
	Of *refund.Refund
}

// storyRefunds is how many of an order's refunds its history has, the newest.
const storyRefunds = 50

// addRefunds adds the order's refunds with each change of their status.
func (b *Reader) addRefunds(ctx context.Context, s *Story) (err error) {
	if s.Order.PaidAmount == 0 {
		return nil
	}
	if s.Refunds, err = refund.OfOrder(ctx, b.db.Read, s.Order.ID); err != nil || len(s.Refunds) == 0 {
		return err
	}
	if left := len(s.Refunds) - storyRefunds; left > 0 {
		s.leaveOut(ItemRefund, int64(left))
		s.Refunds = s.Refunds[left:]
	}
	of := map[int64]*refund.Refund{}
	ids := make([]int64, len(s.Refunds))
	for i, r := range s.Refunds {
		r.Reason = MaskText(r.Reason)
		ids[i], of[r.ID] = r.ID, r
	}
	rows, err := booking.History(ctx, b.db.Read, booking.OfRefund, ids...)
	for _, h := range rows {
		h.Detail = MaskText(h.Detail)
		s.Items = append(s.Items, Item{At: h.CreatedAt, Phase: RefundPhase, Refund: &RefundMove{h, of[h.SubjectID]}})
	}
	return err
}
