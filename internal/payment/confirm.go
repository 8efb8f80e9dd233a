package payment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/stock"

	"github.com/uptrace/bun"
)

// Take commits one callback, together with what else waits, and returns its
// outcome. An error means that nothing is known to be committed: the supplier
// must send again.
func (p *Processor) Take(ctx context.Context, r *Received) (Outcome, error) {
	return p.confirms.Do(ctx, r)
}

// key keeps two messages about one payment out of one transaction.
func (r *Received) key() string {
	ref := r.Callback.OrderRef
	if ref == "" {
		ref = "event " + r.Callback.EventKey
	}
	return strconv.FormatInt(r.Supplier.AccountID, 36) + " " + ref
}

// trade is the supplier's number of the payment, within its account.
func (r *Received) trade() tradeKey { return tradeKey{r.Supplier.AccountID, r.Callback.TradeNo} }

// digest is what makes two messages of one event key the same message: what it
// says, and what it missed, if anything (see isRepeat).
func (r *Received) digest(missed string) string {
	c := r.Callback
	text := fmt.Appendf(nil, "%q %q %d %q %q", c.OrderRef, c.TradeNo, c.Amount, c.Currency, c.Status)
	if missed != "" {
		text = fmt.Appendf(text, " %q", missed)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Confirm is the only way in which a message about a payment changes anything:
// callback, supplier query, compensation, approval and import all come here. It
// moves orders, attempts, money and stock and creates the notifications of all
// items in the caller's transaction.
//
// A wrong amount, an unknown order and late money are outcomes that commit: as
// errors they would take back the very row that people must see.
func (p *Processor) Confirm(ctx context.Context, tx db.Tx, items []*Received) ([]Outcome, error) {
	b := &batch{p: p, tx: tx, items: items}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	outs := make([]Outcome, len(items))
	for i, r := range items {
		d := b.decide(r)
		outs[i] = b.collect(i, r, d)
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

// batch is what one transaction knows and what it is going to write.
type batch struct {
	p     *Processor
	tx    db.Tx
	items []*Received

	// read
	orders   map[string]*order.Order   // by the reference that the message gave
	disputed map[tradeKey]*order.Order // that disputes are about; not locked, as nothing of them changes
	attempts map[int64][]*Attempt      // by order
	trades   map[tradeKey]int64        // settled trade numbers → order
	known    map[eventKey]int64        // messages taken before → their callback
	accounts []int64                   // that the messages came by; the first column of every index below

	// to write
	records    []callbackRow
	keys       []keyRow
	changes    []order.Change
	settled    []*Attempt
	entries    []ledger.Entry
	deduct     []int64
	release    []int64
	facts      []notify.Fact
	factOf     []int // facts[n] comes of items[factOf[n]]
	exceptions []*compensation.Item
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

	ID         int64           `bun:"id,pk"`
	SupplierID int64           `bun:"supplier_id"`
	OrderID    int64           `bun:"order_id"`
	OrderNo    string          `bun:"order_no"`
	TradeNo    string          `bun:"trade_no"`
	EventKey   string          `bun:"event_key"`
	Digest     string          `bun:"digest"`
	Outcome    string          `bun:"outcome"`
	ReceivedAt int64           `bun:"received_at"`
	RemoteAddr string          `bun:"remote_addr"`
	Method     string          `bun:"method"`
	Query      string          `bun:"query"`
	Headers    string          `bun:"headers"`
	Body       []byte          `bun:"body"`
	Steps      json.RawMessage `bun:"steps,type:jsonb"`
}

type keyRow struct {
	bun.BaseModel `bun:"table:callback_keys"`

	AccountID  int64  `bun:"account_id,pk"`
	EventKey   string `bun:"event_key,pk"`
	Digest     string `bun:"digest,pk"`
	CallbackID int64  `bun:"callback_id"`
}

// read loads and locks everything that the items may touch, orders first and by
// id, so that two transactions never wait for each other in a circle.
func (b *batch) read(ctx context.Context) error {
	refs := make([]string, 0, len(b.items))
	trades := make([]string, 0, len(b.items))
	for _, r := range b.items {
		if r.Callback.OrderRef != "" {
			refs = append(refs, r.Callback.OrderRef)
		}
		if r.Callback.TradeNo != "" {
			trades = append(trades, r.Callback.TradeNo)
		}
		if !slices.Contains(b.accounts, r.Supplier.AccountID) {
			b.accounts = append(b.accounts, r.Supplier.AccountID)
		}
	}
	var err error
	if b.orders, err = order.ByNos(ctx, b.tx, b.p.o.DB, refs); err != nil {
		return err
	}
	if err := b.readByAttempt(ctx, refs); err != nil {
		return err
	}
	if err := b.readRest(ctx, trades); err != nil {
		return err
	}
	return b.readDisputed(ctx)
}

// readByAttempt finds the orders of references that are no order numbers: those
// of a second attempt.
func (b *batch) readByAttempt(ctx context.Context, refs []string) error {
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return b.orders[ref] != nil })
	if len(refs) == 0 {
		return nil
	}
	var rows []*Attempt
	if err := b.tx.NewSelect().Model(&rows).Where("pa.account_id IN (?)", bun.List(b.accounts)).
		Where("pa.supplier_ref IN (?)", bun.List(refs)).Scan(ctx); err != nil {
		return fmt.Errorf("find attempts: %w", err)
	}
	ids := make([]int64, len(rows))
	for i, a := range rows {
		ids[i] = a.OrderID
	}
	byID, err := order.ByIDs(ctx, b.tx, b.p.o.DB, ids)
	if err != nil {
		return err
	}
	for _, a := range rows {
		for _, r := range b.items {
			if r.Callback.OrderRef == a.SupplierRef && r.Supplier.AccountID == a.AccountID {
				b.orders[a.SupplierRef] = byID[a.OrderID]
			}
		}
	}
	return nil
}

// readRest loads the orders' attempts, who settled the trade numbers, and which
// messages were taken before: three questions in one round trip, with the keys in
// the columns of attempts.
//
// Trade numbers are looked up without their account, and keys one by one: as long
// as the planner knows nothing of a table, it would rather read all that ever came
// by an account.
func (b *batch) readRest(ctx context.Context, trades []string) error {
	ids := []int64{0}
	for _, o := range b.orders {
		ids = append(ids, o.ID)
	}
	if len(trades) == 0 {
		trades = []string{""}
	}
	keys := make([]askedKey, len(b.items))
	for i, r := range b.items {
		keys[i] = askedKey{r.Supplier.AccountID, r.Callback.EventKey}
	}
	const columns = "SELECT id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at FROM payment_attempts"
	var rows []*Attempt
	err := b.tx.Prepared(ctx, &rows, "WITH _k ? "+columns+" WHERE order_id IN (?) UNION ALL "+columns+
		" WHERE supplier_trade_no IN (?) AND status IN ('succeeded', 'succeeded_surplus') AND supplier_trade_no <> ''"+
		" UNION ALL SELECT callback_id, 0, k.account_id, k.event_key, digest, '"+takenBefore+"', 0, 0, 0 FROM callback_keys AS k, _k"+
		" WHERE k.account_id = _k.account_id AND k.event_key = _k.event_key",
		db.Each{Models: &keys}, ids, trades)
	if err != nil {
		return fmt.Errorf("read attempts and keys: %w", err)
	}
	b.attempts, b.trades, b.known = map[int64][]*Attempt{}, map[tradeKey]int64{}, map[eventKey]int64{}
	for _, a := range rows {
		if a.Status == takenBefore {
			b.known[eventKey{a.AccountID, a.SupplierRef, a.SupplierTradeNo}] = a.ID
			continue
		}
		if a.settled() && a.SupplierTradeNo != "" {
			b.trades[tradeKey{a.AccountID, a.SupplierTradeNo}] = a.OrderID
		}
		// An attempt may be found by both of its keys.
		same := func(x *Attempt) bool { return x.ID == a.ID }
		if !slices.ContainsFunc(b.attempts[a.OrderID], same) {
			b.attempts[a.OrderID] = append(b.attempts[a.OrderID], a)
		}
	}
	return nil
}

// askedKey is a row of the keys that readRest asks for.
type askedKey struct {
	AccountID int64
	EventKey  string
}

// takenBefore marks a row of readRest as the key of a message, not an attempt.
const takenBefore = "key"

// collect turns a decision into rows.
func (b *batch) collect(i int, r *Received, d decision) Outcome {
	c := r.Callback
	out := Outcome{Name: d.outcome, CallbackID: b.p.o.DB.NewID(), OrderNo: c.OrderRef, Result: d.result}
	var orderID int64
	if d.order != nil {
		orderID, out.OrderNo = d.order.ID, d.order.OrderNo
	}
	steps := append(slices.Clone(r.Record.Steps), d.steps...)
	raw, err := json.Marshal(steps)
	if err != nil {
		raw = []byte("[]")
	}
	body := r.Record.Body
	if body == nil {
		body = []byte{}
	}
	row := callbackRow{
		ID: out.CallbackID, SupplierID: r.Supplier.ID, OrderID: orderID, OrderNo: out.OrderNo, TradeNo: c.TradeNo,
		EventKey: c.EventKey, Digest: d.digest, Outcome: d.outcome, ReceivedAt: r.Record.ReceivedAt,
		RemoteAddr: r.Record.RemoteAddr, Method: r.Record.Method, Query: r.Record.Query, Headers: r.Record.Header,
		Body: body, Steps: raw,
	}
	if d.before != 0 {
		out.CallbackID, out.repeat = d.before, &row
	} else {
		b.records = append(b.records, row)
		b.keys = append(b.keys, keyRow{AccountID: r.Supplier.AccountID, EventKey: c.EventKey, Digest: d.digest, CallbackID: out.CallbackID})
	}
	if d.attempt != nil {
		b.settled = append(b.settled, d.attempt)
	}
	if d.exception != nil {
		b.exceptions = append(b.exceptions, d.exception)
	}
	if d.to != "" {
		b.move(r, d, out.CallbackID)
		b.factOf = append(b.factOf, i)
	}
	return out
}

// move collects what goes with a change of status: money, stock, notification.
func (b *batch) move(r *Received, d decision, callbackID int64) {
	o := d.order
	now := b.p.o.DB.Now()
	cause := order.ByCallback
	o.CloseReason = "" // of closing, which it leaves by another door
	if d.to == order.Closed {
		cause = order.BySupplier
		o.ClosedAt, o.CloseReason = &now, string(cause)
	}
	if d.to == order.Paid {
		at := now
		if c := r.Callback; !c.OccurredAt.IsZero() && c.OccurredAt.UnixMicro() < now {
			at = c.OccurredAt.UnixMicro()
		}
		o.PaidAt, o.PaidAmount, o.SupplierTradeNo = &at, r.Callback.Amount, r.Callback.TradeNo
		b.entries = append(b.entries, ledger.Entry{
			Debit: ledger.SupplierAccount(r.Supplier.Code), Credit: ledger.MerchantAccount(b.p.merchantCode(o.MerchantID)),
			Amount: o.PaidAmount, Currency: o.Currency, Ref: paidRef(o.ID),
		})
	}
	if o.HasItems {
		if d.to == order.Paid {
			b.deduct = append(b.deduct, o.ID)
		} else {
			b.release = append(b.release, o.ID)
		}
	}
	b.changes = append(b.changes, order.Change{
		Order: o, To: d.to, Cause: cause, Actor: "supplier:" + r.Supplier.Code, SourceID: callbackID,
	})
	fact := b.p.fact(o, d.to, o.Version+1, now)
	fact.Trace = r.Trace
	b.facts = append(b.facts, fact)
}

// write puts everything down in one round trip, and then moves the stock of
// orders that have items. The program-wide order of locks is orders (locked by
// read), accounts that are new, attempts, stock: what many orders share is locked
// last.
func (b *batch) write(ctx context.Context) ([][]queue.Nudge, error) {
	d, w := b.p.o.DB, b.tx.Writes()
	if len(b.records) > 0 {
		w.Insert(&b.records, "")
		w.Insert(&b.keys, "CONFLICT DO NOTHING")
	}
	b.counted().Write(w, d)
	if len(b.settled) > 0 {
		upsertAttempts(w, b.settled)
	}
	if err := order.Move(b.tx, w, d, b.changes); err != nil {
		return nil, err
	}
	if err := b.p.o.Ledger.Post(ctx, b.tx, w, b.entries); err != nil {
		return nil, err
	}
	compensation.Open(b.tx, w, d, b.exceptions)
	nudges, err := notify.Create(ctx, w, d, b.p.o.Here, b.facts)
	if err != nil {
		return nil, err
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write a batch of callbacks: %w", err)
	}
	if err := stock.Deduct(ctx, b.tx, d, b.deduct); err != nil {
		return nil, err
	}
	if err := stock.Release(ctx, b.tx, d, b.release); err != nil {
		return nil, err
	}
	failpoint.Hit("before_commit")
	return nudges, nil
}

// counted is what the batch adds to the figures of suppliers.
func (b *batch) counted() *report.Delta {
	x := report.NewDelta(b.p.o.DB.Now())
	for _, r := range b.records {
		x.Callback(r.SupplierID, r.Outcome)
	}
	return x
}
