package refund

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// unpaidFor is how long a refund may be reported of a payment that is not known.
const unpaidFor = 10 * time.Minute

// unpaidWaits are the waits between looks for that payment.
var unpaidWaits = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}

// notice is what is left to find out about the refunds of a payment, as stored in the payload of
// its compensation.
type notice struct {
	AccountID string `json:"account"`
	TradeNo   string `json:"trade_no"`
	Currency  string `json:"currency"`
	List      bool   `json:"list,omitempty"` // the supplier's list decides; otherwise the payment is missing
	Since     int64  `json:"since,omitempty"`
}

func (n notice) trade() payment.Trade {
	id, _ := strconv.ParseInt(n.AccountID, 10, 64) // written below
	return payment.Trade{AccountID: id, No: n.TradeNo}
}

// subject is the same for all notices about one payment that find out the same.
func (n notice) subject() int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %t %s", n.AccountID, n.List, n.TradeNo)
	return int64(h.Sum64() >> 1)
}

// note schedules a notice; amount is at stake.
func (m *Machine) note(w *db.Writes, supplierID int64, supplierCode string, n notice, amount int64, orderNo string, merchantID int64) {
	params, _ := json.Marshal(n) // strings, numbers and flags only: cannot fail
	payload, _ := json.Marshal(replaycall.Payload{Supplier: supplierCode, Op: NoticeOp, Reference: n.TradeNo, Params: params})
	x := &compensation.Item{
		Kind: compensation.ReplayCall, Cause: compensation.SupplierUnknown, SubjectKind: compensation.OfRefundNotice,
		SubjectID: n.subject(), SupplierID: supplierID, Amount: amount, Currency: n.Currency, Payload: payload, MadeBy: "callback",
		OrderNo: orderNo, MerchantID: merchantID,
	}
	m.Schedule.OpenDue(w, m.DB, x)
	w.Tx().OnEnd(func(err error) {
		if err == nil {
			m.Wake(x)
		}
	})
}

// await looks for the payment of a refund that is not known: its order is queried at once.
func (m *Machine) await(w *db.Writes, n payment.RefundNotice) {
	c := n.Content
	is := notice{AccountID: strconv.FormatInt(n.Supplier.AccountID, 10), TradeNo: c.TradeNo, Currency: c.Currency, Since: n.ReceivedAt}
	orderNo, merchantID := "", int64(0)
	if n.Order != nil {
		orderNo, merchantID = n.Order.OrderNo, n.Order.MerchantID
	}
	m.note(w, n.Supplier.ID, n.Supplier.Code, is, c.Amount, orderNo, merchantID)
}

// list has the supplier list the refunds of a payment; false = it cannot.
func (m *Machine) list(w *db.Writes, s *state, doubt int64) bool {
	at, ok := m.Settings.Current().Suppliers.ByID(s.paid.supplierID)
	if !ok {
		return false
	}
	if _, ok := at.Can().Refunder.(supplier.RefundLister); !ok {
		return false
	}
	is := notice{AccountID: strconv.FormatInt(s.id.AccountID, 10), TradeNo: s.id.No, Currency: s.paid.currency, List: true}
	item := s.item(m, "", "", 0, map[string]any{})
	m.note(w, at.ID, at.Code, is, doubt, item.OrderNo, item.MerchantID)
	return true
}

// Notices finds out what is left to know about refunds that were made at suppliers.
func (m *Machine) Notices() replaycall.Subject { return notices{m} }

type notices struct{ m *Machine }

// Query looks for a payment, or reads the supplier's list.
func (s notices) Query(ctx context.Context, x compensation.Item, p replaycall.Payload) (compensation.Result, bool) {
	var n notice
	if err := compensation.ReadPayload(p.Params, &n); err != nil {
		return compensation.DeadLetter(compensation.Payload, err.Error()), true
	}
	if !n.List {
		return s.m.lookFor(ctx, x, n), true
	}
	at, ok := s.m.Settings.Current().Suppliers.ByID(x.SupplierID)
	if !ok {
		return compensation.Later(compensation.NotQueryable, "the supplier's settings cannot be read").Again(compensation.Daily), true
	}
	return s.m.readList(ctx, x, at, n), true
}

// MayRepeat is always false: a notice makes no call.
func (notices) MayRepeat(context.Context, compensation.Item, replaycall.Payload) (bool, error) {
	return false, nil
}

// Call is never used.
func (notices) Call(context.Context, compensation.Item, replaycall.Payload) compensation.Result {
	return compensation.DeadLetter(compensation.Payload, "a notice makes no call")
}

// lookFor books the refunds of a payment that is known by now. One that is still missing after ten
// minutes is an exception, which ends when the payment arrives.
func (m *Machine) lookFor(ctx context.Context, x compensation.Item, n notice) (result compensation.Result) {
	if x.OrderNo != "" && x.Attempts <= 1 && m.o.Query != nil {
		m.o.Query(ctx, x.OrderNo)
	}
	err := m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := m.Settle(ctx, tx, n.trade()); err != nil {
			return err
		}
		s, err := m.stateOf(ctx, tx, n.trade(), unlocked)
		if err != nil {
			return err
		}
		missing := time.Duration(m.DB.Now()-n.Since) * time.Microsecond
		switch {
		case s.paid != nil:
			result = compensation.Succeeded("the payment is known")
			return nil
		case missing < unpaidFor:
			i := slices.IndexFunc(unpaidWaits, func(d time.Duration) bool { return missing < d })
			wait := unpaidFor - missing
			if i >= 0 {
				wait = min(wait, unpaidWaits[i])
			}
			result = compensation.Later(compensation.SupplierUnknown, "the payment is not known yet").Again(wait)
			return nil
		}
		result = compensation.Succeeded("the payment is not known: an exception is open")
		return m.reportUnpaid(ctx, tx, x, s)
	})
	if err != nil {
		return compensation.Failed(err)
	}
	return result
}

// reportUnpaid opens the exception about refunds of a payment that is not known.
func (m *Machine) reportUnpaid(ctx context.Context, tx db.Tx, x compensation.Item, s *state) error {
	item := &exception.Item{
		Kind: exception.UnknownRefund, SupplierID: x.SupplierID, MerchantID: x.MerchantID, OrderNo: x.OrderNo, Subject: s.id.No,
		Amount: x.Amount, Currency: x.Currency,
		Detail: exception.Detail(map[string]any{"trade_no": s.id.No, "supplier": m.SupplierName(x.SupplierID), "payment": "unknown"}),
	}
	if x.OrderNo != "" {
		if err := tx.NewRaw("SELECT coalesce(max(id), 0) FROM orders WHERE order_no = ?", x.OrderNo).Scan(ctx, &item.OrderID); err != nil {
			return fmt.Errorf("find the order of a refund: %w", err)
		}
	}
	f := facts{booked: wholePayment}
	f.learn(s.reports, x.Currency)
	f.totals = slices.DeleteFunc(f.totals, func(t total) bool { return t.amount == wholePayment })
	if made := f.conclude().made; made > 0 {
		item.Amount = made
	}
	w := tx.Writes()
	exception.Open(tx, w, m.DB, []*exception.Item{item})
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("report a refund of an unknown payment: %w", err)
	}
	return nil
}

// readList asks the supplier for the list of a payment's refunds and keeps what it says of those
// that are not ours. A complete list is believed before totals.
func (m *Machine) readList(ctx context.Context, x compensation.Item, at supplier.Entry, n notice) compensation.Result {
	again, _ := compensation.WaitSince(x.Age(m.DB.Now()))
	lister, ok := at.Can().Refunder.(supplier.RefundLister)
	if !ok {
		return compensation.Later(compensation.NotQueryable, "the supplier's settings no longer allow listing refunds").Again(compensation.Daily)
	}
	var list supplier.RefundList
	queried := m.DB.Now()
	done, err := m.o.Calls.Do(ctx, suppliercall.Call{To: at, Op: suppliercall.RefundQuery, OrderNo: x.OrderNo, Reference: n.TradeNo},
		func(ctx context.Context) (suppliercall.Said, error) {
			var err error
			list, err = lister.Refunds(ctx, supplier.Refund{TradeNo: n.TradeNo, Currency: n.Currency})
			status := "listed"
			if list.Unknown {
				status = string(supplier.RefundUnknown)
			}
			return suppliercall.Said{Exchange: list.Exchange, Status: status}, err
		})
	if err != nil {
		return compensation.Later(compensation.SupplierTimeout, err.Error()).Again(again)
	}
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return compensation.Failed(err)
	}
	if list.Unknown || list.Exchange.Class != supplier.ClassOK {
		return compensation.Later(booking.CauseOf(done.Class), list.Reason.Error()).Again(again).WithCall(done.ID)
	}
	if err := m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return m.keepList(ctx, tx, n.trade(), list.All, queried) }); err != nil {
		return compensation.Failed(err).WithCall(done.ID)
	}
	pending := slices.ContainsFunc(list.All, func(s supplier.RefundReport) bool { return s.State == supplier.RefundProcessing })
	if pending {
		return compensation.Later(compensation.SupplierUnknown, "a refund on the list is not finished yet").Again(again).WithCall(done.ID)
	}
	return compensation.Succeeded(fmt.Sprintf("%d refunds are listed", len(list.All))).WithCall(done.ID)
}

// keepList stores a list that was asked for at a time, and books what follows.
func (m *Machine) keepList(ctx context.Context, tx db.Tx, t payment.Trade, all []supplier.RefundReport, queried int64) error {
	if err := m.lockPaid(ctx, tx, t); err != nil {
		return err
	}
	s, err := m.stateOf(ctx, tx, t, m.DB.ForUpdate)
	if err != nil {
		return err
	}
	rows := []report{{AccountID: t.AccountID, TradeNo: t.No, ReceivedAt: queried, NewsAt: queried, DatedTo: queried}}
	for _, said := range all {
		ours := slices.ContainsFunc(s.ours, func(r *Refund) bool {
			return r.RefundNo == said.No || r.SupplierRefundNo != "" && r.SupplierRefundNo == said.SupplierNo
		})
		if ours || said.SupplierNo == "" || stageOf(said.State) == 0 { // our own are queried by themselves
			continue
		}
		rows = append(rows, report{
			AccountID: t.AccountID, TradeNo: t.No, Number: said.SupplierNo, Amount: said.Amount, Currency: said.Currency,
			Stage: stageOf(said.State), ReceivedAt: queried, NewsAt: queried,
		})
	}
	w := tx.Writes()
	writeReports(w, rows)
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("keep a list of refunds: %w", err)
	}
	return m.Settle(ctx, tx, t)
}
