package payment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/queue"
	"backstop/internal/exception"
	"backstop/internal/ledger/fact"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/settings"
	"backstop/internal/stock"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Submit commits one message, batched with others, and returns its outcome. After an error
// nothing is known to be committed: the supplier must send it again.
func (p *Processor) Submit(ctx context.Context, m *Message) (Outcome, error) {
	return p.confirms.Do(ctx, m)
}

// Confirm is the only way in which a message about a payment changes anything: callbacks,
// supplier queries, compensations and approvals all end here. It updates orders, attempts,
// ledger and stock and creates the notifications for all messages, in the caller's transaction.
//
// A wrong amount, an unknown order or a late payment is an outcome that commits: as an error it
// would roll back the very row that operators must see. Goods that are out of stock when a late
// payment is accepted are an exception too. The money of a message that becomes an exception is
// held in suspense, see heldRef.
func (p *Processor) Confirm(ctx context.Context, tx db.Tx, items []*Message) ([]Outcome, error) {
	b := &batch{p: p, tx: tx, items: items}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	outs := make([]Outcome, len(items))
	for turn := range turns {
		for i, m := range items {
			if m.turn() == turn {
				d := b.decide(m)
				outs[i] = b.collect(i, m, d)
			}
		}
	}
	if err := b.readNotices(ctx); err != nil {
		return nil, err
	}
	nudges, err := b.write(ctx)
	if err != nil {
		return nil, err
	}
	for n, i := range b.factOf {
		outs[i].nudges = nudges[n]
	}
	return outs, nil
}

// batch is what one transaction has read and will write.
type batch struct {
	p     *Processor
	tx    db.Tx
	items []*Message

	// read
	orders   map[string]*order.Order   // by the reference in the message
	returned map[tradeKey]*order.Order // subjects of disputes and refunds; locked if the money paid them
	byTrade  map[tradeKey]*order.Order // what messages that name no order paid; locked
	attempts map[int64][]*Attempt      // by order
	trades   map[tradeKey]int64        // settled trade number → order
	booked   map[tradeKey]bool         // trade numbers that paid an order
	held     map[string]*held          // money in suspense, by the ref of its entry
	holds    map[tradeKey]int64        // trade numbers of such money → the attempts of no order that take them
	unknown  map[unknownType]int       // open exceptions of unknown types
	about    map[tradeKey][]int64      // open exceptions about trade numbers, which end when those are booked
	decided  map[tradeKey][]ending     // how exceptions about trade numbers ended
	known    map[eventKey]int64        // messages taken before → their callback
	refunds  map[*Message]refundNote   // what messages about refunds match
	reported map[tradeKey]bool         // trade numbers with reports about refunds
	accounts []int64                   // that the messages came by; the first column of every index below

	// to write
	records    []callbackRow
	keys       []keyRow
	changes    []order.Change
	settled    []*Attempt
	holding    []*Attempt // without an order, see hold
	entries    fact.Entries
	deduct     []int64 // orders whose stock is deducted
	release    []int64 // orders whose stock is released
	resell     []int64 // orders whose released stock is sold again
	facts      []notify.Fact
	factOf     []int // facts[n] belongs to items[factOf[n]]
	exceptions []*exception.Item
	freed      []string           // refs of money that leaves suspense
	ended      map[string][]int64 // exceptions whose payment is booked, by order number
	doubtful   []*order.Order     // whose supplier is queried at once
	noted      []*Message         // messages about refunds
	notices    []DisputeNotice
	// bookDisputes adds what follows from the notices; nil = there are none.
	bookDisputes func(context.Context, *db.Writes) error

	newer *settings.Fees // rules that this node has not read yet; nil = none are needed
}

type tradeKey struct {
	account int64
	tradeNo string
}

type eventKey struct {
	account     int64
	key, digest string
}

// callbackRow is one callback as stored.
type callbackRow struct {
	bun.BaseModel `bun:"table:callbacks"`

	ID         int64  `bun:"id,pk"`
	SupplierID int64  `bun:"supplier_id"`
	OrderID    int64  `bun:"order_id"`
	OrderNo    string `bun:"order_no"`
	TradeNo    string `bun:"trade_no"`
	EventKey   string `bun:"event_key"`
	Digest     string `bun:"digest"`
	Outcome    string `bun:"outcome"`
	ReceivedAt int64  `bun:"received_at"`
	RemoteAddr string `bun:"remote_addr"`
	Method     string `bun:"method"`
	Query      string `bun:"query"`
	Headers    string `bun:"headers"`
	Body       []byte `bun:"body"`
	Steps      string `bun:"steps"`
}

type keyRow struct {
	bun.BaseModel `bun:"table:callback_keys"`

	AccountID  int64  `bun:"account_id,pk"`
	EventKey   string `bun:"event_key,pk"`
	Digest     string `bun:"digest,pk"`
	CallbackID int64  `bun:"callback_id"`
}

// collect adds the rows of a decision.
func (b *batch) collect(i int, m *Message, d decision) Outcome {
	out := Outcome{Name: d.outcome, OrderNo: m.orderRef(), Result: d.result}
	if d.order != nil {
		out.OrderNo = d.order.OrderNo
	}
	source := m.Source.ID
	if m.Source.Record != nil {
		b.record(m, d, &out)
		source = out.CallbackID
	}
	if d.attempt != nil {
		b.settled = append(b.settled, d.attempt)
	}
	if d.exception != nil {
		d.exception.CallbackID, d.exception.Payload = out.CallbackID, m.payload()
		b.suspend(m, d.exception)
		b.exceptions = append(b.exceptions, d.exception)
	}
	b.noteDispute(m, d, out.CallbackID)
	b.noteMoney(m, d)
	if b.refunds[m].note != nil && d.before == 0 {
		b.noted = append(b.noted, m)
	}
	if d.to != "" {
		b.move(m, d, source)
		b.factOf = append(b.factOf, i)
	}
	return out
}

// noteMoney records which order a payment in this batch belongs to, for disputes in the same
// batch; readReturned finds earlier ones in their rows.
func (b *batch) noteMoney(m *Message, d decision) {
	if d.order == nil || m.Content.TradeNo == "" {
		return
	}
	settled := d.attempt != nil && d.attempt.settled()
	held := d.exception != nil && exception.IsHeld(d.exception.Kind)
	if settled || held && b.returned[m.trade()] == nil {
		b.returned[m.trade()] = d.order
	}
}

// record adds the raw callback and its key; a repeat is only counted.
func (b *batch) record(m *Message, d decision, out *Outcome) {
	c, r := m.Content, m.Source.Record
	body := r.Body
	if body == nil {
		body = []byte{}
	}
	row := callbackRow{
		ID: b.p.o.DB.NewID(), SupplierID: m.Supplier.ID, OrderNo: out.OrderNo, TradeNo: c.TradeNo,
		EventKey: c.EventKey, Digest: d.digest, Outcome: d.outcome, ReceivedAt: r.ReceivedAt,
		RemoteAddr: r.RemoteAddr, Method: r.Method, Query: r.Query, Headers: r.Header,
		Body: body, Steps: supplier.Steps(slices.Concat(r.Steps, d.steps)).Text(),
	}
	if d.order != nil {
		row.OrderID = d.order.ID
	}
	if d.before != 0 {
		out.CallbackID, out.repeat = d.before, &row
		return
	}
	out.CallbackID = row.ID
	b.records = append(b.records, row)
	if d.to == order.Paid {
		return // the order records which callback paid it
	}
	b.keys = append(b.keys, keyRow{AccountID: m.Supplier.AccountID, EventKey: c.EventKey, Digest: d.digest, CallbackID: row.ID})
}

// move adds a change of status with its ledger entries, stock and notification.
func (b *batch) move(m *Message, d decision, source int64) {
	o := d.order
	now := b.p.o.DB.Now()
	cause := m.Source.Cause
	reason := o.CloseReason
	o.ClosedAt, o.CloseReason = nil, "" // they belonged to the old status
	if d.to == order.Closed {
		o.ClosedAt = &now
		if o.Status != order.Closing || reason == "" || m.Source.Record != nil { // otherwise we asked for it, and the reason is known
			reason = string(order.BySupplier)
		}
		o.CloseReason = reason
		if cause == order.ByCallback {
			cause = order.BySupplier
		}
	}
	if d.to == order.Paid {
		at := now
		if c := m.Content; !c.OccurredAt.IsZero() && c.OccurredAt.UnixMicro() < now {
			at = c.OccurredAt.UnixMicro()
		}
		o.PaidAt, o.PaidAmount, o.SupplierTradeNo = &at, m.Content.Amount, m.Content.TradeNo
		b.entries.Add(fact.Paid, fact.Values{
			From: b.source(m, o), Merchant: b.p.merchantCode(o.MerchantID), ID: strconv.FormatInt(o.ID, 10), Amount: o.PaidAmount,
			Currency: o.Currency,
		})
		b.charge(m, o)
		b.book(m, o)
	}
	switch {
	case !o.HasItems:
	case d.to != order.Paid:
		b.release = append(b.release, o.ID)
	case o.Status.Open():
		b.deduct = append(b.deduct, o.ID)
	default:
		b.resell = append(b.resell, o.ID)
	}
	b.changes = append(b.changes, order.Change{
		Order: o, To: d.to, Cause: cause, Actor: m.Source.Actor, SourceID: source,
		SourceKind: m.Source.kind(),
	})
	fact := b.p.fact(o, d.to, o.Version+1, now)
	fact.Trace = m.Trace
	b.facts = append(b.facts, fact)
}

// book notes that the message's payment is booked for the order. What was open about that payment
// ends, and later messages about it in this batch are repeats.
func (b *batch) book(m *Message, o *order.Order) {
	t := m.trade()
	if t.tradeNo == "" {
		return
	}
	b.booked[t], b.trades[t], b.byTrade[t] = true, o.ID, o
	if ids := b.about[t]; len(ids) > 0 {
		b.ended[o.OrderNo] = append(b.ended[o.OrderNo], ids...)
	}
}

// write sends all rows in one round trip, and then moves the stock of orders with items. The
// program-wide lock order is orders (locked by read), new accounts, attempts, stock: rows
// shared by many orders are locked last.
func (b *batch) write(ctx context.Context) ([][]queue.Nudge, error) {
	d, w := b.p.o.DB, b.tx.Writes()
	if len(b.records) > 0 {
		w.Insert(&b.records, "")
	}
	if len(b.keys) > 0 {
		w.Insert(&b.keys, "CONFLICT DO NOTHING")
	}
	figures := report.NewDelta(d.Now())
	for _, r := range b.records {
		figures.Callback(r.SupplierID, r.Outcome, 1)
	}
	for _, c := range b.changes {
		if o := c.Order; c.To == order.Paid {
			figures.Paid(o.CreatedAt, o.MerchantID, o.SupplierID, o.Currency, o.PaidAmount)
		}
	}
	b.takeTrades(w)
	if len(b.settled) > 0 {
		upsertAttempts(w, b.settled)
	}
	if err := order.Move(w, d, b.changes); err != nil {
		return nil, err
	}
	if err := b.p.o.Ledger.Post(ctx, b.tx, w, b.entries); err != nil {
		return nil, err
	}
	b.free(w)
	for _, no := range slices.Sorted(maps.Keys(b.ended)) {
		w.Add(exception.EndPaid(b.tx, d, no, b.ended[no]...))
	}
	for _, i := range b.noted {
		b.refunds[i].note(w)
	}
	exception.Open(b.tx, w, d, b.exceptions)
	for _, o := range b.doubtful {
		b.p.o.Requery(w, o, queriedAt(o, b.attempts[o.ID]))
	}
	nudges, err := notify.CreateCounted(ctx, w, d, b.p.o.Local, b.facts, figures)
	if err != nil {
		return nil, err
	}
	figures.Write(w, d)
	if b.bookDisputes != nil {
		if err := b.bookDisputes(ctx, w); err != nil {
			return nil, err
		}
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write a batch of messages: %w", err)
	}
	if err := b.settleRefunds(ctx); err != nil {
		return nil, err
	}
	if err := stock.Deduct(ctx, b.tx, d, b.deduct); err != nil {
		return nil, err
	}
	if err := stock.Release(ctx, b.tx, d, b.release); err != nil {
		return nil, err
	}
	if err := b.sellAgain(ctx); err != nil {
		return nil, err
	}
	failpoint.Hit("before_commit")
	return nudges, nil
}

// sellAgain sells the stock of orders that are paid after they had released it. Missing stock
// is an exception.
func (b *batch) sellAgain(ctx context.Context) error {
	short, err := stock.Resell(ctx, b.tx, b.p.o.DB, b.resell)
	if err != nil || len(short) == 0 {
		return err
	}
	items := make([]*exception.Item, len(short))
	for i, s := range short {
		o := b.changes[slices.IndexFunc(b.changes, func(c order.Change) bool { return c.Order.ID == s.OrderID })].Order
		items[i] = &exception.Item{
			Kind: exception.StockShort, OrderID: o.ID, OrderNo: o.OrderNo, MerchantID: o.MerchantID, Subject: s.SKU,
			Detail: exception.Detail(map[string]any{"sku": s.SKU, "quantity": s.Quantity, "short": s.Short}),
		}
	}
	w := b.tx.Writes()
	exception.Open(b.tx, w, b.p.o.DB, items)
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("write stock shortages: %w", err)
	}
	return nil
}
