package refund

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/textlimit"
	"backstop/internal/compensation"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/merchant"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Request is a merchant's request for a refund.
type Request struct {
	OrderNo     string `json:"-"` // in the path
	OutRefundNo string `json:"out_refund_no" kind:"ascii" required:"true" max:"64" example:"RMA-1" doc:"The merchant's number of the refund: the same number with the same content is the same refund."`
	Amount      int64  `json:"amount" kind:"money" required:"true" example:"500" doc:"The amount in minor units of the order's currency."`
	Reason      string `json:"reason" required:"true" max:"200" example:"One was broken" doc:"Why it is refunded."`
	NotifyURL   string `json:"notify_url" max:"2048" doc:"Where this refund is notified, instead of the order's address, else the merchant's."`
}

func (r Request) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", r.OrderNo, r.Amount, r.Reason, r.NotifyURL))
	return hex.EncodeToString(sum[:16])
}

// trade is the payment that a refund belongs to.
type trade struct {
	attemptID, supplierID, accountID int64
	reference, tradeNo               string
	amount                           int64
	currency                         string
}

// Create creates a refund of an order and holds its money at once, so that nothing else can spend
// it. created is false if the same request was made before. Errors: order.ErrNotFound,
// ErrConflict, ErrNotRefundable, ErrSupplier, *ExceedsError, *act.FieldError,
// ledger.ErrInsufficient, suppliercall.ErrShadow.
func (m *Machine) Create(ctx context.Context, of *merchant.Merchant, req Request) (r *Refund, created bool, err error) {
	if err := m.o.Calls.Shadow(); err != nil {
		return nil, false, err
	}
	if req.NotifyURL != "" {
		if err := m.o.CheckURL(req.NotifyURL); err != nil {
			return nil, false, &act.FieldError{Field: "notify_url", Problem: err.Error()}
		}
	}
	create := func(ctx context.Context, tx db.Tx) error {
		r, created, err = m.create(ctx, tx, of, req)
		return err
	}
	err = m.DB.Tx(ctx, create)
	if db.IsUnique(err) { // the same request ran concurrently
		err = m.DB.Tx(ctx, create)
	}
	if err != nil {
		return nil, false, err
	}
	failpoint.Hit("refund_held")
	return r, created, nil
}

func (m *Machine) create(ctx context.Context, tx db.Tx, of *merchant.Merchant, req Request) (*Refund, bool, error) {
	locked, err := order.ByNos(ctx, tx, m.DB, []string{req.OrderNo})
	if err != nil {
		return nil, false, err
	}
	o := locked[req.OrderNo]
	if o == nil || o.MerchantID != of.ID {
		return nil, false, order.ErrNotFound
	}
	before, err := one(ctx, tx.NewSelect().Where("rf.merchant_id = ? AND rf.out_refund_no = ?", of.ID,
		req.OutRefundNo).Where("rf.out_refund_no <> ''"))
	switch {
	case err == nil && before.RequestDigest != req.digest():
		return nil, false, ErrConflict
	case err == nil:
		return before, false, nil
	case !errors.Is(err, ErrNotFound):
		return nil, false, err
	}
	now := m.DB.Now()
	r, err := m.refundOf(ctx, tx, o, req.Amount)
	if err != nil {
		return nil, false, err
	}
	r.OutRefundNo, r.Reason, r.RequestDigest, r.NotifyURL = req.OutRefundNo, req.Reason, req.digest(), req.NotifyURL
	if r.NotifyURL == "" {
		r.NotifyURL = o.NotifyURL
	}
	x, limits := m.begin(tx), m.o.Limits(of.ID, o.Currency)
	if err := x.hold(ctx, r, limits.Overdraft); err != nil {
		return nil, false, err
	}
	// After the account is locked, so that of two concurrent requests the second sees the first.
	if r.ByRule, err = m.byRule(ctx, tx, r, limits); err != nil {
		return nil, false, err
	}
	actor := approval.ByMerchant + ":" + of.Code
	if r.ByRule {
		r.Status = Approved
		x.Items = append(x.Items, m.item(r, compensation.SupplierUnknown, actor))
	} else {
		a, err := m.o.Propose(ctx, tx, approval.Request{
			Action: Action, Object: Object, ObjectID: r.RefundNo, OrderNo: o.OrderNo, MerchantID: of.ID, Merchant: of.Code,
			Version: r.Version,
			Amount:  r.Amount, Currency: r.Currency, Reason: r.Reason,
		})
		if err != nil {
			return nil, false, err
		}
		r.ApprovalID = a.ID
	}
	r.CreatedAt = now
	x.insert(r, booking.Cause{Actor: actor})
	if err := x.Send(ctx); err != nil {
		return nil, false, err
	}
	failpoint.Hit("refund_holding")
	return r, true, nil
}

// Proposal is a refund that an operator proposes; a second person must approve it.
type Proposal struct {
	OrderNo    string
	Amount     int64  // minor units of the order's currency
	Reason     string // also sent to the supplier; clipped to maxReason
	ApprovalID int64
	Actor      string
}

// maxReason bounds the reason of a refund that an operator proposes, in bytes.
const maxReason = 600

// Propose creates the refund of a proposal and holds its money at once, in the transaction that
// writes the proposal. Errors: order.ErrNotFound, ErrNotRefundable, ErrSupplier, *ExceedsError,
// *act.FieldError, ledger.ErrInsufficient, suppliercall.ErrShadow.
func (m *Machine) Propose(ctx context.Context, tx db.Tx, p Proposal) (*Refund, error) {
	if err := m.o.Calls.Shadow(); err != nil {
		return nil, err
	}
	locked, err := order.ByNos(ctx, tx, m.DB, []string{p.OrderNo})
	if err != nil {
		return nil, err
	}
	o := locked[p.OrderNo]
	if o == nil {
		return nil, order.ErrNotFound
	}
	r, err := m.refundOf(ctx, tx, o, p.Amount)
	if err != nil {
		return nil, err
	}
	r.Reason, r.NotifyURL, r.ApprovalID = textlimit.Clip(p.Reason, maxReason), o.NotifyURL, p.ApprovalID
	x := m.begin(tx)
	if err := x.hold(ctx, r, m.o.Limits(o.MerchantID, o.Currency).Overdraft); err != nil {
		return nil, err
	}
	x.insert(r, booking.Cause{Actor: p.Actor, SourceKind: booking.SourceApproval, SourceID: p.ApprovalID})
	return r, x.Send(ctx)
}

// CanRefund reports whether a refund of an order can be proposed now.
func (m *Machine) CanRefund(o *order.Order) bool {
	if m == nil || o.Status != order.Paid || o.RefundedAmount+o.DisputedAmount >= o.PaidAmount || !m.inWindow(o) {
		return false
	}
	return m.refundable(o.SupplierID) == nil
}

// inWindow reports whether a paid order's refund window is not over.
func (m *Machine) inWindow(o *order.Order) bool {
	return o.PaidAt != nil && *o.PaidAt+m.o.Window(o.MerchantID).Microseconds() >= m.DB.Now()
}

// Refundable returns how much of an order's payment is left by its refunds, open ones included,
// and by what is disputed.
func Refundable(ctx context.Context, q bun.IDB, o *order.Order) (int64, error) {
	sum, err := Taken(ctx, q, o.ID)
	return left(o.PaidAmount, o.DisputedAmount, sum), err
}

// refundOf returns a new refund of an amount of a locked order. Errors: ErrNotRefundable,
// ErrSupplier, *ExceedsError, *act.FieldError.
func (m *Machine) refundOf(ctx context.Context, tx db.Tx, o *order.Order, amount int64) (*Refund, error) {
	if o.Status != order.Paid || !m.inWindow(o) {
		return nil, ErrNotRefundable
	}
	p, err := m.paymentOf(ctx, tx, o)
	if err != nil {
		return nil, err
	}
	left, err := Refundable(ctx, tx, o)
	if err != nil {
		return nil, err
	}
	if amount > left {
		return nil, &ExceedsError{left, o.Currency}
	}
	if err := m.refundable(p.supplierID); err != nil {
		return nil, err
	}
	r := m.fill(p, amount)
	r.OrderID, r.OrderNo, r.MerchantID, r.Currency = o.ID, o.OrderNo, o.MerchantID, o.Currency
	return r, nil
}

// fill returns a new, requested refund of a payment.
func (m *Machine) fill(p trade, amount int64) *Refund {
	id := m.DB.NewID()
	return &Refund{
		ID: id, RefundNo: Number(id), AttemptID: p.attemptID, SupplierID: p.supplierID, AccountID: p.accountID, SupplierRef: p.reference,
		TradeNo:     p.tradeNo,
		TradeAmount: p.amount, Amount: amount, Currency: p.currency, Status: Requested, Version: 1, CreatedAt: m.DB.Now(),
	}
}

// refundable checks that a supplier can make refunds. Errors: *act.FieldError, ErrSupplier.
func (m *Machine) refundable(supplierID int64) error {
	s, ok := m.Settings.Current().Suppliers.ByID(supplierID)
	switch {
	case !ok:
		return ErrSupplier
	case s.Can().Refunder == nil:
		return &act.FieldError{Field: "supplier", Problem: "the supplier " + s.Code +
			" cannot make refunds: its settings lack the keys or addresses for them"}
	}
	return nil
}

// paymentOf returns the payment that settled an order. An imported order has no attempt.
func (m *Machine) paymentOf(ctx context.Context, tx db.Tx, o *order.Order) (trade, error) {
	var rows []struct {
		ID, SupplierID, AccountID, Amount int64
		SupplierRef, SupplierTradeNo      string
	}
	err := tx.NewRaw(
		"SELECT id, supplier_id, account_id, amount, supplier_ref, supplier_trade_no FROM payment_attempts WHERE order_id = ? AND status = 'succeeded'", o.ID).Scan(ctx, &rows)
	if err != nil {
		return trade{}, fmt.Errorf("find an order's payment: %w", err)
	}
	p := trade{supplierID: o.SupplierID, reference: o.OrderNo, tradeNo: o.SupplierTradeNo, amount: o.PaidAmount, currency: o.Currency}
	if len(rows) > 0 {
		a := rows[0]
		p = trade{a.ID, a.SupplierID, a.AccountID, reference(a.SupplierRef), a.SupplierTradeNo, a.Amount, o.Currency}
		if p.supplierID == 0 {
			p.supplierID = o.SupplierID
		}
	}
	if p.accountID == 0 {
		err = tx.NewRaw("SELECT account_id FROM suppliers WHERE id = ?", p.supplierID).Scan(ctx, &p.accountID)
	}
	return p, err
}

// hold posts the entry that holds the refund's money. Errors: ledger.ErrInsufficient.
func (x *write) hold(ctx context.Context, r *Refund, overdraft int64) error {
	v, err := x.values(r)
	if err != nil {
		return err
	}
	return x.m.Ledger.Take(ctx, x.Tx, x.W, v.From, overdraft, fact.Entries{fact.Entry(fact.RefundHeld, v)})
}

// byRule reports whether no approval is needed: the refund, and the merchant's total of the day
// with it, are within the limits.
func (m *Machine) byRule(ctx context.Context, tx db.Tx, r *Refund, l Limits) (bool, error) {
	if r.Amount > l.Auto || r.Amount > l.AutoDay {
		return false, nil
	}
	from := calendar.DayStart(m.DB.NowTime().In(m.o.Zone), 0).UnixMicro()
	var sum int64
	err := tx.NewRaw(
		"SELECT coalesce(sum(amount), 0) FROM refunds WHERE merchant_id = ? AND currency = ? AND by_rule AND created_at >= ? AND status NOT IN (?, ?)",
		r.MerchantID, r.Currency, from, Cancelled, Failed).Scan(ctx, &sum)
	if err != nil {
		return false, fmt.Errorf("sum a merchant's refunds of today: %w", err)
	}
	return sum+r.Amount <= l.AutoDay, nil
}

// Cancel cancels a refund that the merchant requested and that has not been sent to the supplier.
// Cancelling it again succeeds too. Errors: ErrNotFound, ErrNotOwn, ErrStarted.
func (m *Machine) Cancel(ctx context.Context, of *merchant.Merchant, no string) (r *Refund, err error) {
	err = m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		seen, err := ByNo(ctx, tx, no)
		if err == nil && seen.MerchantID != of.ID {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		if seen.OutRefundNo == "" {
			return ErrNotOwn
		}
		if seen.ApprovalID != 0 {
			if err := m.o.Recall(ctx, tx, seen.ApprovalID, of.Code); err != nil {
				return err
			}
		}
		var o *order.Order
		if o, r, err = m.lock(ctx, tx, seen.ID); err != nil || r.Status == Cancelled {
			return err
		}
		if _, err := Next(r.Status, Withdraw); err != nil {
			return ErrStarted
		}
		x := m.begin(tx)
		if err := x.do(o, r, booking.Cause{Actor: approval.ByMerchant + ":" + of.Code}, Withdraw); err != nil {
			return err
		}
		return x.Send(ctx)
	})
	return r, err
}

// reference returns a payment's reference at the supplier, without the suffix under which money
// received beside a settled attempt is stored.
func reference(ref string) string {
	ref, _, _ = strings.Cut(ref, "#")
	return ref
}
