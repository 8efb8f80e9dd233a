package refund

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/fund/booking"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// told is what a supplier reported about a refund, as stored in the payload of a notice.
type told struct {
	Order    int64  `json:"order,omitempty"` // order id; 0 = money without an order
	TradeNo  string `json:"trade_no"`
	RefundID string `json:"refund_id,omitempty"` // the supplier's number of the refund
	Event    string `json:"event"`               // replay key of the message: identifies it if there is no number
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Sum      bool   `json:"sum,omitempty"`   // Amount is the total of all refunds of the payment
	List     bool   `json:"list,omitempty"`  // the supplier can list the payment's refunds, so ask it
	Held     string `json:"held,omitempty"`  // ref of the entry that holds money without an order
	Quiet    bool   `json:"quiet,omitempty"` // no exception says so yet: it may have been about open refunds of ours
}

// Match finds the refunds that a message is about: by our number or the supplier's or, if the
// message gives the total of a payment's refunds, by the increase. A message that may be about a
// refund made directly at the supplier is noted and processed right afterwards.
func (m *Machine) Match(ctx context.Context, tx db.Tx, n payment.RefundNotice) (payment.RefundMatch, func(*db.Writes), error) {
	c := n.Content
	back := c.Status == supplier.Refunded || c.Status == supplier.Closed && c.Reverses
	if r, err := m.numbered(ctx, tx, n); err != nil || r != nil {
		if err != nil {
			return "", nil, err
		}
		switch ask, known := named(r.Status, back); {
		case ask:
			return payment.RefundAsked, m.askAbout(r), nil
		case known:
			return payment.RefundKnown, nil, nil
		}
	}
	if !back {
		return payment.NoRefund, nil, nil
	}
	t := told{TradeNo: c.TradeNo, RefundID: c.RefundID, Event: c.EventKey, Amount: c.Amount, Currency: c.Currency, Sum: c.RefundSum ||
		c.Status == supplier.Closed}
	if n.Order == nil {
		t.Held = payment.HeldRef(n.Supplier.AccountID, c.TradeNo, c.OrderRef)
		return payment.NoRefund, m.notice(n, t), nil
	}
	t.Order = n.Order.ID
	if c.Status == supplier.Closed {
		t.Amount, t.Currency = n.Order.PaidAmount, n.Order.Currency
	}
	all, err := OfOrder(ctx, tx, n.Order.ID)
	if err != nil {
		return "", nil, err
	}
	sum, open := sumOf(all)
	if t.Sum {
		_, t.List = n.Supplier.Can().Refunder.(supplier.RefundLister)
		switch {
		case t.Amount == sum:
			return payment.RefundKnown, nil, nil
		case len(open) > 0:
			t.Quiet = true
			return payment.RefundAsked, func(w *db.Writes) {
				for _, r := range open {
					m.askAbout(r)(w)
				}
				if one := len(open) == 1 && sum+open[0].Amount == t.Amount; !one {
					m.notice(n, t)(w)
				}
			}, nil
		}
	}
	if n.Order.Status != order.Paid || n.Order.SupplierTradeNo != c.TradeNo {
		return payment.NoRefund, nil, nil // of surplus money or an unknown payment: operators decide
	}
	return payment.NoRefund, m.notice(n, t), nil
}

// numbered finds the refund whose number is in a message; nil = none of ours.
func (m *Machine) numbered(ctx context.Context, tx db.Tx, n payment.RefundNotice) (*Refund, error) {
	c := n.Content
	if r, err := one(ctx, tx.NewSelect().Where("rf.account_id = ? AND rf.refund_no = ?", n.Supplier.AccountID, c.OrderRef)); !errors.Is(err,
		ErrNotFound) {
		return r, err // the reference is our number itself
	}
	if c.RefundNo == "" && c.RefundID == "" {
		return nil, nil
	}
	r, err := one(ctx, tx.NewSelect().Where("rf.account_id = ?", n.Supplier.AccountID).
		Where("rf.trade_no = ? AND (rf.refund_no = ? OR rf.supplier_refund_no = ? AND rf.supplier_refund_no <> '')", c.TradeNo, c.RefundNo,
			c.RefundID).OrderExpr("rf.id"))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// sumOf returns how much of a payment has been refunded, and the refunds that are still open.
func sumOf(all []*Refund) (sum int64, open []*Refund) {
	for _, r := range all {
		switch r.Status {
		case Succeeded:
			sum += r.Amount
		case Submitted, Unknown:
			open = append(open, r)
		}
	}
	return sum, open
}

// askAbout schedules a query of the supplier about a refund now. For a refund that succeeded
// this is a new compensation.
func (m *Machine) askAbout(r *Refund) func(*db.Writes) {
	return func(w *db.Writes) {
		x := m.item(r, compensation.SupplierUnknown, "callback")
		if r.Status == Succeeded {
			x.FromVersion = r.Version
		}
		m.o.Schedule.OpenDue(w, m.o.DB, x)
		w.Add(compensation.DueNow(w.Tx(), m.o.DB, x.Kind, x.SubjectKind, x.SubjectID))
	}
}

// notice schedules the processing of a supplier's report in a transaction of its own.
func (m *Machine) notice(n payment.RefundNotice, t told) func(*db.Writes) {
	return func(w *db.Writes) {
		params, _ := json.Marshal(t) // strings, numbers and flags only: cannot fail
		payload, _ := json.Marshal(replaycall.Payload{Supplier: n.Supplier.Code, Op: NoticeOp, Reference: t.TradeNo, Params: params})
		x := &compensation.Item{
			Kind: compensation.ReplayCall, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfRefundNotice,
			SubjectID:  m.o.DB.NewID(),
			SupplierID: n.Supplier.ID, Amount: t.Amount, Currency: t.Currency, Payload: payload, MadeBy: "callback",
		}
		if n.Order != nil {
			x.OrderNo, x.MerchantID = n.Order.OrderNo, n.Order.MerchantID
		}
		m.o.Schedule.OpenDue(w, m.o.DB, x)
		w.Tx().OnEnd(func(err error) {
			if err == nil {
				m.Wake(x)
			}
		})
	}
}

// Notices processes what suppliers reported about refunds.
func (m *Machine) Notices() replaycall.Subject { return notices{m} }

type notices struct{ m *Machine }

// Ask books refunds that were made directly at the supplier.
func (s notices) Ask(ctx context.Context, x compensation.Item, p replaycall.Payload) (compensation.Result, bool) {
	var t told
	if err := compensation.ReadPayload(p.Params, &t); err != nil {
		return compensation.Died(compensation.Payload, err.Error()), true
	}
	at, ok := s.m.o.Settings.Current().Suppliers.ByID(x.SupplierID)
	if !ok {
		return compensation.Later(compensation.NotAskable, "the supplier's settings cannot be read").Again(booking.Daily), true
	}
	if t.List {
		return s.m.adoptListed(ctx, x, at, t), true
	}
	n, wait, err := s.m.adopt(ctx, at, t)
	switch {
	case err != nil:
		return compensation.Failed(err), true
	case wait:
		d, _ := compensation.WaitSince(x.Age(s.m.o.DB.Now()))
		return compensation.Later(compensation.SupplierUnknown, "it may be about an open refund of ours: waiting until that ends").Again(d),
			true
	}
	return compensation.Succeeded(fmt.Sprintf("booked %d refunds that were made at the supplier", n)), true
}

// MayRepeat is always false: a notice makes no call.
func (notices) MayRepeat(context.Context, compensation.Item, replaycall.Payload) (bool, error) {
	return false, nil
}

// Call is never used.
func (notices) Call(context.Context, compensation.Item, replaycall.Payload) compensation.Result {
	return compensation.Died(compensation.Payload, "a notice makes no call")
}

// adopt books the refund that one message reports. wait = it may be about an open refund of ours.
func (m *Machine) adopt(ctx context.Context, at supplier.Entry, t told) (n int, wait bool, err error) {
	err = m.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		n, wait = 0, false
		o, err := m.lockOrder(ctx, tx, t.Order)
		if err != nil {
			return err
		}
		if o == nil {
			n, err = m.adoptHeld(ctx, tx, at, t)
			return err
		}
		all, err := OfOrder(ctx, tx, o.ID)
		if err != nil {
			return err
		}
		amount, key := t.Amount, t.RefundID
		if key == "" {
			key = t.Event
		}
		if t.Sum {
			if amount, wait = increase(all, t.Amount); wait {
				return nil
			}
			key = "sum:" + t.TradeNo + ":" + strconv.FormatInt(t.Amount, 10)
		}
		n, err = m.adoptOne(ctx, tx, o, at, t, key, amount)
		return err
	})
	if db.IsUnique(err) { // another message about it was booked concurrently
		return 0, false, nil
	}
	return n, wait, err
}

// adoptOne books one refund of an order that was made at the supplier. If it exceeds what is
// left of the payment, operators decide.
func (m *Machine) adoptOne(ctx context.Context, tx db.Tx, o *order.Order, at supplier.Entry, t told, key string, amount int64) (int,
	error,
) {
	var known int
	if err := tx.NewRaw("SELECT count(*) FROM refunds WHERE account_id = ? AND adopted = ? AND adopted <> ''", at.AccountID, key).Scan(ctx,
		&known); err != nil || known > 0 {
		return 0, err
	}
	sum, err := Taken(ctx, tx, o.ID)
	if err != nil || amount <= 0 {
		return 0, err
	}
	if t.Quiet {
		w := tx.Writes()
		m.elsewhere(tx, w, o, at, cmp.Or(t.RefundID, t.Event, t.TradeNo), amount, t.Currency, "")
		if err := w.Exec(ctx); err != nil {
			return 0, err
		}
	}
	if amount > left(o.PaidAmount, o.DisputedAmount, sum) || t.Currency != o.Currency {
		return 0, err
	}
	p, err := m.paymentOf(ctx, tx, o)
	if err != nil {
		return 0, err
	}
	r := m.fill(p, amount)
	r.OrderID, r.OrderNo, r.MerchantID, r.Currency, r.NotifyURL = o.ID, o.OrderNo, o.MerchantID, o.Currency, o.NotifyURL
	return 1, m.begin(tx).adopted(ctx, o, r, at, t, key)
}

// elsewhere opens the exception about a refund that was made at the supplier.
func (m *Machine) elsewhere(tx db.Tx, w *db.Writes, o *order.Order, at supplier.Entry, no string, amount int64, currency, word string) {
	exception.Open(tx, w, m.o.DB, []*exception.Item{{
		Kind: exception.UnknownRefund, SupplierID: at.ID, MerchantID: o.MerchantID, OrderID: o.ID, OrderNo: o.OrderNo, Subject: no,
		Amount: amount, Currency: currency,
		Detail: exception.Detail(map[string]any{"refund_no": no, "status": word, "trade_no": o.SupplierTradeNo, "supplier": at.Code}),
	}})
}

// adoptHeld books a refund of all the money held for a payment without an order. If only a part
// was refunded, operators decide.
func (m *Machine) adoptHeld(ctx context.Context, tx db.Tx, at supplier.Entry, t told) (int, error) {
	h, err := m.heldOf(ctx, tx, t.Held)
	if err != nil || h == nil || h.Amount != t.Amount || h.Currency != t.Currency {
		return 0, err
	}
	if err := m.free(ctx, tx, t.Held); err != nil {
		return 0, err
	}
	r := m.fill(trade{supplierID: at.ID, accountID: at.AccountID, tradeNo: t.TradeNo, amount: h.Amount, currency: h.Currency}, h.Amount)
	r.HeldRef = t.Held
	return 1, m.begin(tx).adopted(ctx, nil, r, at, t, "held:"+t.Held)
}

// adopted writes a refund that has already succeeded.
func (x *write) adopted(ctx context.Context, o *order.Order, r *Refund, at supplier.Entry, t told, key string) error {
	now := x.m.o.DB.Now()
	m, err := Next("", Adopted)
	if err != nil {
		return err
	}
	r.Status, r.Adopted, r.SupplierRefundNo, r.FinishedAt, r.Reason = m.To, key, t.RefundID, &now, "made at the supplier"
	if err := x.apply(o, r, m); err != nil {
		return err
	}
	x.insert(r, by{actor: "supplier:" + at.Code})
	return x.send(ctx)
}

// heldMoney is money in suspense.
type heldMoney struct {
	Amount   int64
	Currency string
	Account  string // suspense account
}

// heldOf returns the money that an entry holds, as long as an exception names the entry; nil =
// nothing is held any more.
func (m *Machine) heldOf(ctx context.Context, q bun.IDB, ref string) (*heldMoney, error) {
	var rows []heldMoney
	err := q.NewRaw(
		"SELECT t.amount, t.currency, c.code AS account FROM transfers AS t JOIN accounts AS c ON c.id = t.credit_account WHERE t.ref = ?"+
			" AND EXISTS (SELECT 1 FROM exceptions AS x WHERE x.held_ref = t.ref AND x.held_ref <> '')", ref).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// free removes an entry from the exceptions that name it: its money now belongs to the refund.
// Of two concurrent calls, one fails as stale.
func (m *Machine) free(ctx context.Context, tx db.Tx, ref string) error {
	res, err := tx.NewRaw("UPDATE exceptions SET held_ref = '' WHERE held_ref = ? AND held_ref <> ''", ref).Exec(ctx)
	if err != nil {
		return fmt.Errorf("take money out of suspense: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, db.ErrStale)
	}
	return nil
}
