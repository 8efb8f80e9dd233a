package refund

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

// madeThere is the reason of refunds that were made at the supplier.
const madeThere = "made at the supplier"

// paid is a payment whose refunds are booked.
type paid struct {
	trade
	order *order.Order // that it paid; nil = it is in suspense
	held  string       // ref of the entry that holds it, if it paid no order
	// about are the order and merchant that held money is said to be for; 0 = none.
	about struct {
		OrderID, MerchantID int64
		OrderNo             string
	}
}

// state is everything that is stored about the refunds of one payment.
type state struct {
	facts
	id      payment.Trade
	paid    *paid // nil = it is not known
	reports []report
	rows    []*Refund // that were made at the supplier, oldest first
	foreign report    // that is in another currency
}

// Settle implements payment.Refunds: it locks what the payments paid, and books the difference
// between what follows from all that is known and what is booked.
func (m *Machine) Settle(ctx context.Context, tx db.Tx, trades ...payment.Trade) error {
	slices.SortFunc(trades, func(a, b payment.Trade) int {
		return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.No, b.No))
	})
	for _, id := range trades {
		if err := m.settleOne(ctx, tx, id); err != nil {
			return fmt.Errorf("book the refunds of the payment %s: %w", id.No, err)
		}
	}
	return nil
}

func (m *Machine) settleOne(ctx context.Context, tx db.Tx, id payment.Trade) error {
	var known bool
	if err := tx.NewRaw("SELECT EXISTS (SELECT 1 FROM refund_reports WHERE trade_no = ? AND account_id = ?)", id.No,
		id.AccountID).Scan(ctx, &known); err != nil || !known {
		return err
	}
	if err := m.lockPaid(ctx, tx, id); err != nil {
		return err
	}
	s, err := m.stateOf(ctx, tx, id, m.DB.ForUpdate)
	if err != nil || s.paid == nil {
		return err
	}
	if err := s.moveAlong(ctx, m, tx); err != nil {
		return err
	}
	c := s.conclude()
	if err := s.makeRoom(ctx, m, tx, c.made); err != nil {
		return err
	}
	steps := s.plan(c.made, s.rows)
	for _, st := range steps {
		if err := s.book(ctx, m, tx, st); err != nil {
			return err
		}
	}
	if s.paid.order == nil {
		if err := m.clear(ctx, tx, s.paid.held, len(steps) > 0); err != nil {
			return err
		}
	}
	return s.report(ctx, m, tx, c)
}

// settledAs finds the attempt that has a trade number.
const settledAs = "SELECT id, order_id, status, supplier_id, supplier_ref, amount FROM payment_attempts WHERE account_id = ? AND supplier_trade_no = ?" +
	" AND supplier_trade_no <> '' AND status IN (?)"

type attemptRow struct {
	ID, OrderID, SupplierID, Amount int64
	Status                          payment.AttemptStatus
	SupplierRef                     string
}

func attemptOf(ctx context.Context, q bun.IDB, id payment.Trade) (*attemptRow, error) {
	var rows []*attemptRow
	if err := q.NewRaw(settledAs, id.AccountID, id.No, bun.List(payment.Settled)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("find a payment: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// lockPaid locks what changes with a payment's refunds: its order, then its attempt. Money that
// was accepted for an order while we waited is stale.
func (m *Machine) lockPaid(ctx context.Context, tx db.Tx, id payment.Trade) error {
	a, err := attemptOf(ctx, tx, id)
	if err != nil || a == nil {
		return err
	}
	if _, err := m.lockOrder(ctx, tx, a.OrderID); err != nil {
		return err
	}
	var locked []int64
	q := tx.NewSelect().TableExpr("payment_attempts").Column("id").Where("id = ? AND order_id = ? AND status = ?", a.ID, a.OrderID, a.Status)
	if err := m.DB.ForUpdate(q).Scan(ctx, &locked); err != nil {
		return fmt.Errorf("lock a payment: %w", err)
	}
	if len(locked) == 0 {
		return db.ErrStale
	}
	return nil
}

// stateOf reads the state of one payment; lock is applied to the query of its refunds.
func (m *Machine) stateOf(ctx context.Context, tx db.Tx, id payment.Trade, lock func(*bun.SelectQuery) *bun.SelectQuery) (*state, error) {
	s := &state{id: id}
	var err error
	if s.reports, err = readReports(ctx, tx, id); err != nil {
		return nil, err
	}
	if s.paid, err = m.findPaid(ctx, tx, id); err != nil || s.paid == nil {
		return s, err
	}
	var all []*Refund
	q := tx.NewSelect().Model(&all).Where("rf.account_id = ? AND rf.trade_no = ?", id.AccountID, id.No).OrderExpr("rf.id").Limit(maxOfOrder)
	if err := lock(q).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a payment's refunds: %w", err)
	}
	for _, r := range all {
		if r.Adopted == "" {
			s.ours = append(s.ours, r)
		} else {
			s.rows = append(s.rows, r)
		}
	}
	s.booked = s.paid.amount
	if s.paid.order != nil {
		s.disputed = s.paid.order.DisputedAmount
	} else if err := s.readHeld(ctx, tx); err != nil {
		return nil, err
	}
	s.foreign = s.learn(s.reports, s.paid.currency)
	return s, nil
}

// findPaid finds the payment with a trade number: the order that it paid, or the entry that holds
// it; nil = neither is booked.
func (m *Machine) findPaid(ctx context.Context, tx db.Tx, id payment.Trade) (*paid, error) {
	a, err := attemptOf(ctx, tx, id)
	if err != nil || a == nil {
		return nil, err
	}
	p := &paid{trade: trade{
		attemptID: a.ID, supplierID: a.SupplierID, accountID: id.AccountID, reference: reference(a.SupplierRef), tradeNo: id.No, amount: a.Amount,
	}}
	var o *order.Order
	if a.OrderID != 0 {
		if o, err = order.ByID(ctx, tx, a.OrderID); err != nil {
			return nil, err
		}
		p.supplierID = cmp.Or(p.supplierID, o.SupplierID)
	}
	if a.Status == payment.Succeeded {
		p.order, p.amount, p.currency = o, o.PaidAmount, o.Currency
		return p, nil
	}
	p.held = payment.HeldRef(id.AccountID, id.No, "")
	h, err := heldEntry(ctx, tx, p.held)
	if err != nil || h == nil {
		return nil, err
	}
	p.amount, p.currency = h.Amount, h.Currency
	if o != nil {
		p.about.OrderID, p.about.OrderNo, p.about.MerchantID = o.ID, o.OrderNo, o.MerchantID
	}
	return p, nil
}

// readHeld completes the facts about money in suspense: what disputes took of it, and what people
// settled outside of Backstop.
func (s *state) readHeld(ctx context.Context, tx db.Tx) error {
	var err error
	if s.disputed, err = disputedOf(ctx, tx, s.paid.held); err != nil {
		return err
	}
	var named bool
	if err := tx.NewRaw("SELECT EXISTS (SELECT 1 FROM exceptions WHERE held_ref = ? AND held_ref <> '')", s.paid.held).Scan(ctx, &named); err != nil || named {
		return err
	}
	// Nothing is held any more but what refunds and disputes took.
	s.booked = s.disputed
	for _, r := range slices.Concat(s.ours, s.rows) {
		if !slices.Contains(dead, r.Status) {
			s.booked += r.Amount
		}
	}
	err = tx.NewRaw("SELECT coalesce(CAST(sum(t.amount) AS BIGINT), 0) FROM exceptions AS x JOIN transfers AS t ON t.ref = 'elsewhere:' || CAST(x.decided_by AS TEXT)"+
		" WHERE x.kind IN (?) AND x.supplier_id IN (SELECT id FROM suppliers WHERE account_id = ?) AND x.subject = ? AND x.decided_by <> 0 AND x.outcome = ?",
		bun.List(exception.SuspenseKinds), s.id.AccountID, s.id.No, exception.RefundedElsewhere).Scan(ctx, &s.elsewhere)
	if err != nil {
		return fmt.Errorf("find what was settled elsewhere: %w", err)
	}
	return nil
}

// sum returns how much is booked as made at the supplier.
func (s *state) sum() (sum int64) {
	for _, r := range s.rows {
		if r.Status == Succeeded {
			sum += r.Amount
		}
	}
	return sum
}

// with returns what would follow if one more element were known.
func (s *state) with(is report) conclusion {
	all := slices.Clone(s.reports)
	if i := slices.IndexFunc(all, func(r report) bool { return r.Number == is.Number && r.Total == is.Total }); i >= 0 {
		all[i].merge(is)
	} else {
		all = append(all, is)
	}
	if s.paid == nil {
		return conclusion{}
	}
	f := facts{ours: s.ours, booked: s.booked, disputed: s.disputed, elsewhere: s.elsewhere}
	f.learn(all, s.paid.currency)
	return f.conclude()
}

// makeRoom ends the refunds of ours that were not sent and no longer fit, the newest first.
func (s *state) makeRoom(ctx context.Context, m *Machine, tx db.Tx, made int64) error {
	left := s.left() - made
	for _, r := range s.ours {
		if r.Status != Requested && r.Status != Approved {
			continue
		}
		if r.Amount <= left {
			left -= r.Amount
			continue
		}
		x := m.begin(tx)
		if err := x.do(s.paid.order, r, booking.Cause{Actor: s.actor(m), Detail: madeThere}, unsent(r.Status)); err != nil {
			return err
		}
		if err := x.Write.Send(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) actor(m *Machine) string { return "supplier:" + m.SupplierName(s.paid.supplierID) }

// book carries out one step.
func (s *state) book(ctx context.Context, m *Machine, tx db.Tx, st step) error {
	x, r, c := m.begin(tx), st.row, booking.Cause{Actor: s.actor(m)}
	switch {
	case r == nil:
		return s.add(ctx, x, st)
	case st.amount < r.Amount:
		r = x.split(r, st, c)
	case st.number != "":
		was := r.SupplierRefundNo
		r.SupplierRefundNo = st.number
		x.W.Guard(tx.NewRaw("UPDATE refunds SET supplier_refund_no = ? WHERE id = ? AND supplier_refund_no = ?", st.number, r.ID, was), 1)
	}
	if st.back {
		c.Detail = "failed at the supplier"
		if err := x.do(s.paid.order, r, c, CameBack); err != nil {
			return err
		}
		s.note(x, r, exception.RefundFailed, "returned")
	}
	return x.Write.Send(ctx)
}

// add books a new refund.
func (s *state) add(ctx context.Context, x *write, st step) error {
	m, now := x.m, x.m.DB.Now()
	r, o := m.fill(s.paid.trade, st.amount), s.paid.order
	r.HeldRef = s.paid.held
	if o != nil {
		r.OrderID, r.OrderNo, r.MerchantID, r.Currency, r.NotifyURL = o.ID, o.OrderNo, o.MerchantID, o.Currency, o.NotifyURL
	}
	move, err := Next("", Adopted)
	if err != nil {
		return err
	}
	// Of two transactions that cannot see each other, one fails.
	r.Adopted = s.id.No + "#" + strconv.Itoa(len(s.rows)+1)
	r.Status, r.SupplierRefundNo, r.FinishedAt, r.Reason = move.To, st.number, &now, madeThere
	s.rows = append(s.rows, r)
	if err := x.apply(o, r, move); err != nil {
		return err
	}
	x.insert(r, booking.Cause{Actor: s.actor(m)})
	s.note(x, r, exception.UnknownRefund, "")
	return x.Write.Send(ctx)
}

// split makes a part of a refund that was made at the supplier a row of its own. It moves no
// money: the entry stays that of the whole, and the fee returned is divided.
func (x *write) split(r *Refund, st step, c booking.Cause) *Refund {
	part, amount := *r, st.amount
	part.ID = x.m.DB.NewID()
	part.RefundNo, part.Version, part.Amount, part.CreatedAt = Number(part.ID), 1, amount, x.m.DB.Now()
	part.SplitFrom = cmp.Or(r.SplitFrom, r.ID)
	part.Adopted += "/" + part.RefundNo
	part.SupplierRefundNo = cmp.Or(st.number, r.SupplierRefundNo)
	part.FeeReturned, part.CostReturned = r.FeeReturned*amount/r.Amount, r.CostReturned*amount/r.Amount
	was := r.Amount
	r.Amount, r.FeeReturned, r.CostReturned = r.Amount-amount, r.FeeReturned-part.FeeReturned, r.CostReturned-part.CostReturned
	x.W.Guard(x.Tx.NewRaw("UPDATE refunds SET amount = ?, fee_returned = ?, cost_returned = ? WHERE id = ? AND amount = ? AND status = ?",
		r.Amount, r.FeeReturned, r.CostReturned, r.ID, was, Succeeded), 1)
	c.Detail = "part of " + r.RefundNo
	row := part // as it begins
	x.insert(&row, c)
	return &part
}

// moveAlong moves the refunds of money that was in suspense to the order that it has paid: from
// now on they are the merchant's.
func (s *state) moveAlong(ctx context.Context, m *Machine, tx db.Tx) error {
	o := s.paid.order
	for _, r := range s.rows {
		if o == nil || r.HeldRef == "" || r.Status != Succeeded {
			continue
		}
		x := m.begin(tx)
		v, err := x.values(r)
		if err != nil {
			return err
		}
		held, was := r.HeldRef, r.Version
		r.OrderID, r.OrderNo, r.MerchantID, r.NotifyURL, r.HeldRef = o.ID, o.OrderNo, o.MerchantID, o.NotifyURL, ""
		r.AttemptID, r.SupplierRef, r.TradeAmount, r.Version = s.paid.attemptID, s.paid.reference, s.paid.amount, was+1
		if v.Merchant, err = m.MerchantCode(tx, o.MerchantID); err != nil {
			return err
		}
		x.Entries.Add(fact.RefundMoved, v)
		if err := x.fees(o, r, v); err != nil {
			return err
		}
		x.refunded(o, r.Amount)
		x.notify(r, noticeSucceeded)
		x.note(r, booking.Cause{Actor: s.actor(m), Detail: "accepted for the order"}, r.Status, m.DB.Now())
		x.W.Guard(tx.NewUpdate().Model(r).Column("order_id", "order_no", "merchant_id", "notify_url", "held_ref", "attempt_id", "supplier_ref",
			"trade_amount", "version", "fee_returned", "cost_returned").WherePK().Where("rf.version = ? AND rf.held_ref = ?", was, held), 1)
		if err := x.Write.Send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note lists what was booked by itself: an exception that has ended, alerted once.
func (s *state) note(x *write, r *Refund, kind, why string) {
	item := s.item(x.m, kind, r.RefundNo, r.Amount, map[string]any{"refund_no": cmp.Or(r.SupplierRefundNo, r.RefundNo)})
	if why != "" {
		item.Annotate(map[string]any{"status": why})
	}
	exception.OpenBooked(x.W, x.m.DB, item)
}

func (s *state) item(m *Machine, kind, subject string, amount int64, detail map[string]any) *exception.Item {
	item := &exception.Item{
		Kind: kind, SupplierID: s.paid.supplierID, Subject: subject, Amount: amount, Currency: s.paid.currency,
		OrderID: s.paid.about.OrderID, OrderNo: s.paid.about.OrderNo, MerchantID: s.paid.about.MerchantID,
	}
	if o := s.paid.order; o != nil {
		item.OrderID, item.OrderNo, item.MerchantID = o.ID, o.OrderNo, o.MerchantID
	}
	detail["trade_no"], detail["supplier"] = s.id.No, m.SupplierName(s.paid.supplierID)
	item.Detail = exception.Detail(detail)
	return item
}

// report keeps one exception open about what is refunded but not booked: more than there is, in
// another currency, or in doubt if the supplier cannot list its refunds. It ends by itself.
func (s *state) report(ctx context.Context, m *Machine, tx db.Tx, c conclusion) error {
	w := tx.Writes()
	detail := map[string]any{}
	amount := c.exceeds
	if c.exceeds > 0 {
		detail["exceeds"] = c.exceeds
	}
	if c.doubt > 0 && !m.list(w, s, c.doubt) {
		amount += c.doubt
		detail["doubt"] = c.doubt
	}
	item := s.item(m, exception.UnknownRefund, s.id.No, amount, detail)
	if amount == 0 && s.foreign.TradeNo != "" {
		item.Amount, item.Currency = max(s.foreign.Amount, s.foreign.Total), s.foreign.Currency
	}
	var rows []struct {
		State     exception.State
		Amount    int64
		Currency  string
		OrderNo   string
		DecidedBy int64
	}
	if err := tx.NewRaw("SELECT state, amount, currency, order_no, decided_by FROM exceptions WHERE kind = ? AND subject = ?"+
		" AND supplier_id IN (SELECT id FROM suppliers WHERE account_id = ?)", exception.UnknownRefund, s.id.No, s.id.AccountID).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("find what is open about refunds: %w", err)
	}
	known := false
	for _, x := range rows {
		same := x.Amount == item.Amount && x.Currency == item.Currency && x.OrderNo == item.OrderNo
		known = known || same && (x.State.Open() || x.DecidedBy != 0)
		if x.State.Open() && !same {
			w.Add(exception.ResolveTrade(tx, m.DB, exception.UnknownRefund, s.id.AccountID, s.id.No, exception.Booked))
		}
	}
	if item.Amount > 0 && !known {
		exception.Open(tx, w, m.DB, []*exception.Item{item})
	}
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("write what is open about refunds: %w", err)
	}
	return nil
}
