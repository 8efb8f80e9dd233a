package dispute

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/exception"
	"backstop/internal/fund"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

// Options of a Machine.
type Options struct {
	booking.Deps
	Refunds *refund.Machine // whose refunds a dispute stops
}

// Machine is the only writer of disputes.
type Machine struct {
	booking.Deps
	o Options
}

// New returns a Machine.
func New(o Options) *Machine { return &Machine{Deps: o.Deps, o: o} }

// item is a dispute in one transaction: as it was, and as it becomes.
type item struct {
	d        *Dispute
	was      Dispute // ID 0 = it is new
	order    *order.Order
	passed   []Status
	cause    booking.Cause
	stopped  []*refund.Refund
	suspense string // the account of money without an order that was taken; "" = none
	settled  bool   // it has ended, and nothing contradicts that
}

// write collects what one transaction does to disputes.
type write struct {
	*booking.Write
	m      *Machine
	items  []*item
	unsent map[int64][]*refund.Refund // of the orders, locked
	taken  map[int64]int64            // by order: what the disputes of this transaction add
	over   []payment.DisputeNotice    // inquiries that ended
}

// Note implements payment.Disputes: it reads and locks the refunds and disputes that messages
// concern, and names the disputes in their exceptions.
func (m *Machine) Note(ctx context.Context, tx db.Tx, all []payment.DisputeNotice) (func(context.Context, *db.Writes) error, error) {
	x := m.begin(tx)
	nos := make([]string, len(all))
	for i, n := range all {
		nos[i] = n.Content.Dispute.No
		if err := x.lockRefunds(ctx, n.Order); err != nil {
			return nil, err
		}
	}
	if err := x.lock(ctx, "dp.supplier_dispute_no IN (?)", bun.List(nos)); err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b payment.DisputeNotice) int {
		return cmp.Compare(a.Exception.OccurredAt, b.Exception.OccurredAt)
	})
	for _, n := range all {
		if err := x.note(ctx, n); err != nil {
			return nil, err
		}
	}
	failpoint.Hit("dispute_noted")
	return func(ctx context.Context, w *db.Writes) error {
		x.W = w
		if err := x.book(); err != nil {
			return err
		}
		return x.Fill(ctx)
	}, nil
}

func (m *Machine) begin(tx db.Tx) *write {
	return &write{Write: m.Begin(tx), m: m, unsent: map[int64][]*refund.Refund{}, taken: map[int64]int64{}}
}

// lockRefunds locks the refunds of a locked order that a dispute of it would stop.
func (x *write) lockRefunds(ctx context.Context, o *order.Order) (err error) {
	if o == nil || x.m.o.Refunds == nil || x.unsent[o.ID] != nil {
		return nil
	}
	x.unsent[o.ID], err = x.m.o.Refunds.Unsent(ctx, x.Tx, o.ID)
	return err
}

// lock locks disputes by id, after orders and refunds.
func (x *write) lock(ctx context.Context, where string, args ...any) error {
	var rows []*Dispute
	q := x.m.DB.ForUpdate(x.Tx.NewSelect().Model(&rows).Where(where, args...).OrderExpr("dp.id"))
	if err := q.Scan(ctx); err != nil {
		return fmt.Errorf("read disputes: %w", err)
	}
	for _, d := range rows {
		x.items = append(x.items, &item{d: d, was: *d, cause: booking.Cause{Actor: "backstop"}})
	}
	return nil
}

// itemOf returns the dispute that a message is about; nil = it is new. Two suppliers may receive
// the messages of one account.
func (x *write) itemOf(n payment.DisputeNotice) *item {
	for _, it := range x.items {
		if d := it.d; d.SupplierDisputeNo == n.Content.Dispute.No &&
			(d.SupplierID == n.Supplier.ID || d.AccountID == n.Supplier.AccountID) {
			return it
		}
	}
	return nil
}

// note adds what one message says.
func (x *write) note(ctx context.Context, n payment.DisputeNotice) error {
	c, said := n.Content, n.Content.Dispute
	it := x.itemOf(n)
	details := map[string]any{}
	switch {
	case it == nil && !opens(said):
		if said.Over {
			x.over = append(x.over, n)
		}
		return nil
	case n.Order != nil && c.Currency != n.Order.Currency:
		details["order_amount"], details["order_currency"] = n.Order.PaidAmount, n.Order.Currency
		if it == nil { // operators adjust both sums
			n.Exception.Annotate(details)
			return nil
		}
	case it == nil && (c.Amount <= 0 || c.Currency == ""):
		return nil // a later message may say how much
	case it == nil:
		it = x.open(n)
	}
	d := it.d
	it.cause = booking.Cause{Actor: "supplier:" + n.Supplier.Code}
	if n.CallbackID != 0 {
		it.cause.SourceKind, it.cause.SourceID = booking.SourceCallback, n.CallbackID
	}
	if !said.DueBy.IsZero() {
		d.due(said.DueBy.UnixMicro())
	}
	if d.Reason == "" {
		d.Reason = said.Reason
	}
	it.passed = append(it.passed, d.learn(said)...)
	if n.Order != nil && c.Currency == n.Order.Currency && d.Currency == n.Order.Currency {
		if err := x.match(ctx, it, n.Order); err != nil {
			return err
		}
	}
	if err := x.takeHeld(ctx, it); err != nil {
		return err
	}
	it.settled = d.Status.ended() && !d.contradicts(said)
	details["dispute"] = d.DisputeNo
	if d.Amount != c.Amount || d.Currency != c.Currency {
		details["booked_amount"], details["booked_currency"] = d.Amount, d.Currency
	}
	if d.Exceeds > 0 {
		details["exceeds"] = d.Exceeds
	}
	if d.contradicts(said) {
		details["booked_status"] = d.Status
	}
	if d.Reinstated > 0 && it.was.Reinstated == 0 { // nothing is left to adjust
		details["booked_entry"] = fact.Ref(fact.DisputeReinstated, fact.Values{ID: d.key()})
	}
	if said.FeeCurrency != "" && said.FeeCurrency != d.Currency && said.Fee > 0 {
		details["fee"], details["fee_currency"] = said.Fee, said.FeeCurrency
	}
	n.Exception.Annotate(details)
	return nil
}

// open returns a new dispute.
func (x *write) open(n payment.DisputeNotice) *item {
	c, id := n.Content, x.m.DB.NewID()
	d := &Dispute{
		ID: id, DisputeNo: Number(id), SupplierID: n.Supplier.ID, AccountID: n.Supplier.AccountID, SupplierDisputeNo: c.Dispute.No,
		TradeNo: c.TradeNo, ChargeNo: c.Dispute.Charge, Amount: c.Amount, Currency: c.Currency, Reason: c.Dispute.Reason, Status: Opened,
		Version:  1,
		OpenedAt: x.m.DB.Now(),
	}
	it := &item{d: d}
	x.items = append(x.items, it)
	return it
}

// due sets the deadline for evidence; a later one alerts again.
func (d *Dispute) due(at int64) {
	if d.DueBy == nil || *d.DueBy < at {
		d.DueBy, d.DueAlertedAt = &at, nil
	}
}

// match makes a dispute that of a locked order which its payment paid: from now on its money is
// the merchant's, and refunds of the order that no supplier has are stopped.
func (x *write) match(ctx context.Context, it *item, o *order.Order) error {
	it.order = o
	d := it.d
	if d.matched() || d.HeldRef != "" {
		return nil
	}
	d.OrderID, d.OrderNo, d.MerchantID = o.ID, o.OrderNo, o.MerchantID
	d.settle()
	if d.counts() > 0 {
		it.stopped, x.unsent[o.ID] = x.unsent[o.ID], nil
	}
	used, err := refund.TakenByUs(ctx, x.Tx, o.ID) // those made at the supplier give way
	if err != nil {
		return err
	}
	for _, r := range it.stopped {
		used -= r.Amount
	}
	left := max(o.PaidAmount-used-o.DisputedAmount-x.taken[o.ID], 0)
	d.Exceeds = max(d.counts()-left, 0)
	x.taken[o.ID] += d.counts()
	return nil
}

// takeHeld takes money that paid no order out of suspense, once the supplier took it.
func (x *write) takeHeld(ctx context.Context, it *item) (err error) {
	d := it.d
	if d.matched() || !d.Withdrawn || d.HeldRef != "" || x.m.o.Refunds == nil {
		return nil
	}
	for _, trade := range []string{d.TradeNo, d.ChargeNo} {
		if trade == "" || it.suspense != "" {
			continue
		}
		ref := payment.HeldRef(d.AccountID, trade, "")
		if it.suspense, err = x.m.o.Refunds.TakeHeld(ctx, x.Tx, ref, d.Amount, d.Currency); err != nil {
			return err
		}
		if it.suspense != "" {
			d.HeldRef = ref
		}
	}
	return nil
}

// book adds everything to the write.
func (x *write) book() error {
	for _, n := range x.over {
		x.W.Add(exception.ResolveDispute(x.Tx, x.m.DB, n.Supplier.ID, n.Content.Dispute.No))
	}
	for _, it := range x.items {
		if len(it.stopped) > 0 {
			c := booking.Cause{Actor: it.cause.Actor, Detail: "dispute " + it.d.DisputeNo}
			if err := x.m.o.Refunds.Stop(x.Write, it.order, it.stopped, c); err != nil {
				return err
			}
		}
		if err := x.post(it); err != nil {
			return err
		}
		x.save(it)
		x.notify(it)
		if it.settled {
			x.W.Add(exception.ResolveDispute(x.Tx, x.m.DB, it.d.SupplierID, it.d.SupplierDisputeNo))
		}
	}
	x.Tx.OnEnd(func(err error) {
		if err == nil {
			failpoint.Hit("dispute_booked")
		}
	})
	return nil
}

// post adds the entries that a dispute has now and did not have before.
func (x *write) post(it *item) (err error) {
	d := it.d
	all, before := d.postings(), it.was.postings()
	if len(all) == len(before) {
		return nil
	}
	v := fact.Values{ID: d.key(), Currency: d.Currency}
	if v.Supplier, err = x.m.SupplierCode(x.Tx, d.SupplierID); err != nil {
		return err
	}
	whose, reserve, payer := ledger.SuspenseAccount(v.Supplier), ledger.SuspenseAccount(v.Supplier), ledger.CostAccount(v.Supplier)
	if it.suspense != "" {
		whose, reserve = it.suspense, it.suspense
	}
	if d.matched() {
		if v.Merchant, err = x.m.MerchantCode(x.Tx, d.MerchantID); err != nil {
			return err
		}
		whose = ledger.MerchantAccount(v.Merchant)
		reserve, payer = whose+fund.ReservedPart, whose
	}
	for _, p := range all {
		if slices.Contains(before, p) {
			continue
		}
		v.Amount = p.amount
		switch v.From, v.To = reserve, whose; p.fact {
		case fact.DisputeFee, fact.DisputeFeeBack:
			v.From, v.To = payer, payer
		}
		x.Entries.Add(p.fact, v)
	}
	return nil
}

// save writes a dispute with its history, and what its order has disputed.
func (x *write) save(it *item) {
	w, d, now := x.W, it.d, x.m.DB.Now()
	isNew, from := it.was.ID == 0, it.was.Status
	if isNew {
		x.moved(it, 1, "", Opened, now)
		from = Opened
	}
	for _, to := range it.passed {
		d.Version++
		x.moved(it, d.Version, from, to, now)
		from = to
	}
	if d.Status.ended() && d.ClosedAt == nil {
		d.ClosedAt = &now
	}
	switch {
	case isNew:
		w.Insert(&[]*Dispute{d}, "")
	case *d != it.was:
		w.Guard(x.Tx.NewUpdate().Model(d).
			Column("order_id", "order_no", "merchant_id", "exceeds", "fee", "fee_back", "reason", "status", "withdrawn", "reinstated",
				"released", "held_ref", "due_by",
				"due_alerted_at", "version", "closed_at").
			WherePK().Where("dp.version = ? AND dp.status = ?", it.was.Version, it.was.Status), 1)
	}
	if by := d.counts() - it.was.counts(); by != 0 {
		w.Guard(x.Tx.NewRaw("UPDATE orders SET disputed_amount = disputed_amount + ? WHERE id = ? AND disputed_amount + ? >= 0", by,
			d.OrderID, by), 1)
	}
	if d.HeldRef != "" && d.Reinstated > 0 && it.was.Reinstated == 0 {
		w.Add(exception.HoldAgain(x.Tx, x.m.DB, d.SupplierID, d.TradeNo, d.HeldRef))
	}
}

// moved adds a change of status to the history.
func (x *write) moved(it *item, version int64, from, to Status, now int64) {
	x.Record(booking.Change{
		Subject: booking.OfDispute, SubjectID: it.d.ID, Version: version, From: string(from), To: string(to), Cause: it.cause,
		CreatedAt: now,
	})
}

// notify adds the notifications: that a dispute is open, once its merchant is known, and its end.
func (x *write) notify(it *item) {
	d := it.d
	if !d.matched() {
		return
	}
	add := func(kind string, as *Dispute) {
		url := ""
		if it.order != nil {
			url = it.order.NotifyURL
		}
		x.Notify(kind, d.MerchantID, d.ID, as.Version, url, x.m.ViewOf(as))
	}
	if !it.was.matched() {
		first := *d
		first.Status, first.Version = Opened, 1
		add("dispute.opened", &first)
	}
	if d.Status.ended() && !(it.was.matched() && it.was.Status == d.Status) {
		add("dispute."+string(d.Status), d)
	}
}
