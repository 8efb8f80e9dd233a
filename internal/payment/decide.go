package payment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// decision is what one message means, before anything is written.
type decision struct {
	outcome   string
	result    supplier.Result
	digest    string // identifies repeats of the message
	before    int64  // the callback that brought the same message before; 0 = none
	order     *order.Order
	to        order.Status // "" = no change
	attempt   *Attempt     // to save
	exception *exception.Item
	steps     []supplier.Step
}

// pass and fail record the checks that adapters cannot make.
func (d *decision) pass(name string, code text.Code) {
	d.steps = append(d.steps, supplier.Step{Name: name, OK: true, Message: code.Say()})
}

func (d *decision) fail(name string, code text.Code, args ...any) {
	d.steps = append(d.steps, supplier.Step{Name: name, Message: code.Say(args...)})
}

// decide compares a message with its order: first the order, then account, currency, amount,
// and last the state (see the table in docs/states.md).
func (b *batch) decide(m *Message) decision {
	c := m.Content
	d := decision{outcome: Ignored, result: supplier.Taken, digest: m.digest(""), order: b.orderOf(m)}
	if m.Unreadable != nil {
		// Each repeat counts in its exception and reopens it; only the record is not written
		// twice.
		d.digest = m.digest("unreadable " + m.signedSum())
		d.before = b.before(m, d.digest)
		d.result = m.Unreadable.Result
		d.except(m, m.Unreadable.Kind, map[string]any{"reason": m.Unreadable.Reason.Error(), "said": m.Unreadable.Reason})
		if d.before == 0 {
			b.doubt(m, d.order)
		}
		return d
	}
	account := b.wrongAccount(m, d.order)
	if b.isRepeat(m, &d, account) {
		d.outcome = Repeat
		d.pass("repeat", stepRepeat)
		return d
	}
	if b.wasDecided(m, d.order) {
		d.outcome = Repeat
		d.pass("state", stepDecided)
		return d
	}
	if (c.Status != supplier.Paid || c.RefundTotal == 0) && b.decideRefund(m, &d) {
		return d
	}
	switch c.Status {
	case supplier.Other:
		d.pass("status", stepNoMove)
		return d
	case supplier.Unknown:
		b.exceptUnknown(m, &d)
		return d
	case supplier.Disputed:
		d.exceptDispute(m, b.p.o.DB.Now())
		return d
	case supplier.Complained:
		d.exceptComplaint(m)
		return d
	}
	if d.order == nil && c.Status == supplier.Refunded {
		d.fail("refund", stepNoRefund)
		d.except(m, exception.UnknownRefund, map[string]any{"refund_no": c.RefundNo, "status": c.RawStatus})
		return d
	}
	if d.order == nil && m.orderRef() == "" && (c.Status == supplier.Failed || c.Status == supplier.Closed && !c.Reverses) {
		d.pass("status", stepNoMove) // no money moved, and no order is named
		return d
	}
	if d.order == nil {
		d.fail("order", stepNoOrder, strconv.Quote(m.orderRef()))
		d.except(m, exception.UnknownOrder, map[string]any{"status": c.RawStatus})
		return d
	}
	d.pass("order", stepOrder)
	if c.Status == supplier.Paid && b.settledBy(m, d.order) { // whatever has changed in the settings since
		if !b.decideRefund(m, &d) {
			d.outcome = Repeat
			d.pass("state", stepSameTrade)
		}
		return d
	}
	if account != nil {
		d.fail("account", stepAccount, account.field, strconv.Quote(account.got), strconv.Quote(account.want))
		d.except(m, exception.AccountMismatch, map[string]any{"field": account.field, "got": account.got, "want": account.want})
		return d
	}
	d.pass("account", stepOurs)
	switch c.Status {
	case supplier.Refunded:
		d.fail("refund", stepNoRefund)
		d.except(m, exception.UnknownRefund, map[string]any{"refund_no": c.RefundNo, "status": c.RawStatus})
	case supplier.Closed:
		b.decideClosed(m, &d)
	case supplier.Failed:
		b.decideFailed(m, &d)
	case supplier.Paid:
		b.decidePaid(m, &d)
	}
	return d
}

// orderOf returns the order of a message; nil = none.
func (b *batch) orderOf(m *Message) *order.Order {
	if m.unnamed() {
		return b.byTrade[m.trade()]
	}
	if m.goesBack() {
		for _, t := range m.tradesOf() {
			if o := b.returned[t]; o != nil {
				return o
			}
		}
	}
	if m.Content.Dispute != nil {
		return nil
	}
	return b.orders[m.orderRef()]
}

// before returns the callback that brought the same message before; 0 = none. Messages from
// other sources have no key.
func (b *batch) before(m *Message, digest string) int64 {
	if m.Source.Record == nil {
		return 0
	}
	return b.known[eventKey{m.Supplier.AccountID, m.Content.EventKey, digest}]
}

// isRepeat reports whether the same message was accepted before, and chooses the digest of its
// record. A message that matched no order or account is recorded under a digest of its own: the
// order may have been imported since, or the account corrected in the settings or in the
// message, and then this is the payment.
func (b *batch) isRepeat(m *Message, d *decision, wrong *mismatch) bool {
	known := func() bool {
		d.before = b.before(m, d.digest)
		return d.before != 0
	}
	switch {
	case known():
		return true
	case d.order == nil:
		d.digest = m.digest("order")
	case wrong != nil:
		d.digest = m.digest(wrong.field + " " + wrong.got)
	default:
		return false
	}
	return known()
}

// mismatch is a field by which a message belongs to another account.
type mismatch struct{ field, got, want string }

// wrongAccount returns the first such field, or nil. A payment must contain all configured
// fields; other messages contain fewer (a refund has no application id) but must not contradict
// them.
func (b *batch) wrongAccount(m *Message, o *order.Order) *mismatch {
	if o == nil {
		return nil
	}
	identity := m.Supplier.Adapter.Identity()
	for _, field := range slices.Sorted(maps.Keys(identity)) { // in a fixed order, because the first one is part of the digest
		want := identity[field]
		got, named := m.Content.Identity[field]
		if want != "" && got != want && (named || m.Content.Status == supplier.Paid) {
			return &mismatch{field, got, want}
		}
	}
	if o.SupplierID == m.Supplier.ID {
		return nil
	}
	// A payment started at another supplier than the order's belongs to that supplier's
	// account.
	for _, a := range b.attempts[o.ID] {
		if a.AccountID == m.Supplier.AccountID && a.SupplierID != 0 && a.SupplierRef == m.orderRef() {
			return nil
		}
	}
	made, ok := b.p.o.Settings.Current().Suppliers.ByID(o.SupplierID)
	if !ok {
		return &mismatch{"supplier", m.Supplier.Code, "the supplier that the order was made for"}
	}
	if made.AccountID != m.Supplier.AccountID {
		return &mismatch{"supplier", m.Supplier.Code, made.Code}
	}
	return nil
}

// settledBy reports whether this very payment paid the order.
func (b *batch) settledBy(m *Message, o *order.Order) bool {
	c := m.Content
	return b.booked[m.trade()] && b.trades[m.trade()] == o.ID && c.Amount == o.PaidAmount && c.Currency == o.Currency
}

// AmountStep is the check of a payment's amount against its order's.
const AmountStep = "amount"

// SameTrade is the code of a check that a payment passed: it is the one, of the same amount, that paid its order.
var SameTrade = stepSameTrade.Key

func (b *batch) decidePaid(m *Message, d *decision) {
	c, o, waive := m.Content, d.order, m.Source.Waive
	if c.Currency != o.Currency {
		d.fail("currency", stepNot, c.Currency, o.Currency)
		d.except(m, exception.CurrencyMismatch, map[string]any{"got": c.Currency, "want": o.Currency})
		return
	}
	if c.Amount != o.Amount && !(waive.Amount && c.Amount > 0) {
		d.fail(AmountStep, stepNot, money.Format(c.Amount, c.Currency), money.Format(o.Amount, o.Currency)+" "+o.Currency)
		d.except(m, exception.AmountMismatch, map[string]any{"got": c.Amount, "want": o.Amount, "difference": c.Amount - o.Amount})
		return
	}
	d.pass(AmountStep, stepAmount)
	by := b.trades[m.trade()] // the order that already has this payment
	if by != 0 && by != o.ID {
		d.fail("trade number", stepSettled, c.TradeNo)
		d.except(m, exception.DuplicatePayment, map[string]any{"settled_order_id": fmt.Sprint(by)})
		return
	}
	switch {
	case o.Status == order.Paid && o.SupplierTradeNo == c.TradeNo:
		d.outcome = Repeat
		d.pass("state", stepSameTrade)
	case b.held[m.heldRef()].spent(): // whatever the order's state: an approval would pay with it twice
		d.outcome = Repeat
		d.pass("state", stepException)
	case o.Status.Open() || o.Status != order.Paid && waive.Late:
		d.outcome, d.to = Paid, order.Paid
		d.attempt = b.attemptFor(m, o, Succeeded)
		d.pass("state", stepMayPay)
	case by != 0 && m.Source.Record == nil:
		d.outcome = Repeat
		d.pass("state", stepException)
	case o.Status == order.Paid:
		d.fail("state", stepPaidBy, o.SupplierTradeNo)
		d.attempt = b.attemptFor(m, o, SucceededSurplus)
		d.except(m, exception.DuplicatePayment, map[string]any{"first_trade_no": o.SupplierTradeNo})
	default:
		d.fail("state", stepLate, o.Status)
		d.attempt = b.attemptFor(m, o, SucceededSurplus)
		d.except(m, exception.LatePayment, map[string]any{"status": o.Status, "close_reason": o.CloseReason})
	}
}

// decideFailed: a failure fails the order only if it is final for the supplier and no other
// attempt may still succeed.
func (b *batch) decideFailed(m *Message, d *decision) {
	c, o := m.Content, d.order
	d.outcome = FailedTry
	if !c.Final || !o.Status.Open() {
		d.pass("state", stepNothing)
		return
	}
	d.attempt = b.attemptFor(m, o, AttemptFailed)
	if b.othersOpen(m, d) {
		return
	}
	d.outcome, d.to = OrderFailed, order.Failed
	d.pass("state", stepFailed)
}

// decideClosed: an attempt that can no longer be paid closes its order, unless another attempt
// is open. An order that is being paid stays open for another attempt, until its timeout. For a
// payment that was made, the status may mean that it was refunded in full.
func (b *batch) decideClosed(m *Message, d *decision) {
	c, o := m.Content, d.order
	if _, paid := b.trades[m.trade()]; paid && c.Reverses {
		d.fail("refund", stepNoRefund)
		d.except(m, exception.UnknownRefund, map[string]any{"status": c.RawStatus})
		return
	}
	if !o.Status.Open() {
		d.pass("state", stepNothing)
		return
	}
	if c.OneTry {
		b.closeTry(m, d)
		return
	}
	if m.Source.Record != nil || b.hasAttempt(m, o) { // a payment that we queried may never have started
		d.attempt = b.attemptFor(m, o, AttemptClosed)
	}
	if b.othersOpen(m, d) {
		d.outcome = FailedTry
		return
	}
	if o.Status == order.Paying {
		d.outcome = FailedTry
		d.pass("state", stepPayAgain)
		return
	}
	d.outcome, d.to = OrderClosed, order.Closed
	d.pass("state", stepClosed)
}

// closeTry closes the one attempt that the message is about. The merchant may have started another
// payment under the same reference, so the order stays as it is.
func (b *batch) closeTry(m *Message, d *decision) {
	d.outcome = FailedTry
	d.pass("state", stepPayAgain)
	for _, a := range b.attempts[d.order.ID] {
		if a.AccountID == m.Supplier.AccountID && a.SupplierRef == m.orderRef() && a.open() &&
			cmp.Or(a.ExternalID, a.SupplierTradeNo, m.Content.TradeNo) == m.Content.TradeNo {
			d.attempt = b.attemptFor(m, d.order, AttemptClosed)
		}
	}
}

// doubt has the supplier queried at once about the order of a message that cannot be read: it may
// have been paid, and would expire.
func (b *batch) doubt(m *Message, o *order.Order) {
	if o == nil || !o.Status.Open() || b.p.o.Requery == nil {
		return
	}
	if at := queriedAt(o, b.attempts[o.ID]); at == m.Supplier.ID {
		if _, can := b.p.canQuery(at); can {
			b.doubtful = append(b.doubtful, o)
		}
	}
}

// hasAttempt reports whether the message's attempt is stored.
func (b *batch) hasAttempt(m *Message, o *order.Order) bool {
	return slices.ContainsFunc(b.attempts[o.ID], func(a *Attempt) bool {
		return a.AccountID == m.Supplier.AccountID && a.SupplierRef == m.orderRef()
	})
}

// othersOpen reports whether another attempt of the order may still be paid.
func (b *batch) othersOpen(m *Message, d *decision) bool {
	for _, a := range b.attempts[d.order.ID] {
		if a.open() && a.SupplierRef != m.orderRef() {
			d.pass("state", stepOther)
			return true
		}
	}
	return false
}

// exceptDispute: the order stays paid; operators decide whether to contest the dispute. Its
// exception needs no order.
func (d *decision) exceptDispute(m *Message, now int64) {
	c := m.Content
	if d.order == nil {
		d.fail("order", stepNoTrade, strconv.Quote(c.TradeNo))
	} else {
		d.pass("order", stepOrder)
	}
	d.fail("dispute", stepDispute, cmp.Or(c.Dispute.Reason, "–"), cmp.Or(c.Dispute.Status, "–"))
	detail := map[string]any{"type": c.RawStatus, "dispute_no": c.Dispute.No, "reason": c.Dispute.Reason, "status": c.Dispute.Status}
	if !c.Dispute.DueBy.IsZero() {
		detail["due_by"] = c.Dispute.DueBy.UTC().Format(time.RFC3339)
	}
	d.except(m, exception.DisputeOpened, detail)
	d.exception.Subject, d.exception.OccurredAt = c.Dispute.No, now
	if !c.OccurredAt.IsZero() {
		d.exception.OccurredAt = min(c.OccurredAt.UnixMicro(), now)
	}
	// Suppliers send whole seconds: of two messages in one second, the one that ends the
	// dispute is the later.
	if c.Dispute.Over {
		d.exception.OccurredAt++
	}
}

// exceptComplaint opens one exception per complaint, whatever becomes of it.
func (d *decision) exceptComplaint(m *Message) {
	d.fail("complaint", stepComplaint, m.Content.Complaint)
	d.except(m, exception.Complaint, map[string]any{"type": m.Content.RawStatus, "complaint_no": m.Content.Complaint})
	d.exception.Subject = m.Content.Complaint
}

// noWord stands for the type of a message without type or status.
const noWord = "(none)"

// unknownType is a type of messages that is not in the adapter's table.
type unknownType struct {
	supplierID int64
	word       string
}

func (m *Message) unknownType() unknownType {
	return unknownType{m.Supplier.ID, cmp.Or(m.Content.RawStatus, noWord)}
}

// maxUnknown bounds the open exceptions of messages of one unknown type. Further ones are counted
// in the exception of their type.
const maxUnknown = 1000

// exceptUnknown opens one exception per subject if the message names an order or a trade of ours;
// otherwise one per supplier and type, whose detail names the newest message.
func (b *batch) exceptUnknown(m *Message, d *decision) {
	c := m.Content
	d.fail("status", stepUnknown, strconv.Quote(c.RawStatus))
	t := m.unknownType()
	detail := map[string]any{"type": t.word, "order_no": c.OrderRef}
	if c.Amount != 0 {
		detail["amount"], detail["currency"] = c.Amount, c.Currency
	}
	d.except(m, exception.UnknownEvent, detail)
	ours := d.order != nil || b.trades[m.trade()] != 0
	if ours && b.unknown[t] < maxUnknown {
		b.unknown[t]++
		d.exception.Subject = cmp.Or(c.TradeNo, c.RefundNo, m.orderRef(), t.word)
		return
	}
	d.exception.Subject = t.word
	d.exception.OrderID, d.exception.OrderNo, d.exception.MerchantID = 0, "", 0
	d.exception.Amount, d.exception.Currency = 0, ""
}

// except makes an exception the outcome.
func (d *decision) except(m *Message, kind string, detail map[string]any) {
	c := m.Content
	d.outcome = kind
	x := &exception.Item{
		Kind: kind, SupplierID: m.Supplier.ID, OrderNo: m.orderRef(), Subject: c.TradeNo, Amount: c.Amount, Currency: c.Currency,
	}
	if kind == exception.UnknownRefund {
		x.Subject = cmp.Or(c.RefundNo, c.EventKey, c.TradeNo) // a payment may be refunded in parts
	}
	if x.Subject == "" {
		x.Subject = c.EventKey
	}
	if x.Subject == "" && m.Source.Record != nil { // nothing could be parsed: identify it by its signed text
		x.Subject = "body " + m.signedSum()
	}
	if d.order != nil {
		x.OrderID, x.OrderNo, x.MerchantID = d.order.ID, d.order.OrderNo, d.order.MerchantID
	}
	if m.Source.kind() == order.SourceCall {
		detail["call"] = strconv.FormatInt(m.Source.ID, 10)
	}
	detail["supplier"] = m.Supplier.Code
	detail["trade_no"] = c.TradeNo
	x.Detail = exception.Detail(detail)
	d.exception = x
}
