package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// held is money that is or was in suspense.
type held struct {
	account  string // the suspense account
	amount   int64
	currency string
	rows     int64 // stored exceptions with this ref
	there    bool  // it is in suspense now, or was refunded from there
	disputed bool  // a dispute took some of it
}

// spent reports whether the money can no longer pay an order: it has left suspense by a decision
// or as a refund, or a dispute took some of it.
func (h *held) spent() bool { return h != nil && (h.disputed || !h.there) }

// HeldRef is the ref of the entry that holds one payment that matches no order: one per trade
// number of an account, or per reference if the supplier gives no number.
func HeldRef(accountID int64, tradeNo, reference string) string {
	return refOfHeld(heldID(accountID, tradeNo, reference))
}

func heldID(accountID int64, tradeNo, reference string) string {
	return strconv.FormatInt(accountID, 10) + ":" + cmp.Or(tradeNo, reference)
}

func refOfHeld(id string) string { return fact.Ref(fact.Held, fact.Values{ID: id}) }

// heldID identifies the held money of the message, whichever order it is confirmed for.
func (m *Message) heldID() string {
	c := m.Content
	return heldID(m.Supplier.AccountID, c.TradeNo, cmp.Or(c.OrderRef, c.EventKey))
}

func (m *Message) heldRef() string { return refOfHeld(m.heldID()) }

// heldMoney selects entries by ref, in the columns of attempts, with id 0: the number of
// exceptions that name the entry, what refunds made at the supplier and disputes took of it, the
// ref, the account, the currency, and the amount. Exceptions name it while some of the money is in
// suspense.
var heldMoney = "SELECT 0, (SELECT count(*) FROM exceptions AS x WHERE x.held_ref = t.ref AND x.held_ref <> ''), 0, t.ref, c.code, t.currency, t.amount," +
	" (SELECT coalesce(CAST(sum(r.amount) AS BIGINT), 0) FROM refunds AS r WHERE r.held_ref = t.ref AND r.held_ref <> '' AND r.adopted <> '' AND r.status = 'succeeded')," +
	" (SELECT count(*) FROM disputes AS d WHERE d.held_ref = t.ref AND d.held_ref <> '' AND d.withdrawn AND d.reinstated < d.amount), 0, ''" +
	" FROM transfers AS t JOIN accounts AS c ON c.id = t.credit_account WHERE t.ref IN (?)"

// UnusedRefunds are the statuses in which a refund takes nothing from its payment, as its machine
// has them.
var UnusedRefunds = []string{"rejected", "cancelled", "failed", "returned"}

// TakenOfHeld is SQL for what refunds and disputes took of the money that the entry with a ref
// holds.
func TakenOfHeld(ref string) string {
	return "(SELECT coalesce(CAST(sum(_r.amount) AS BIGINT), 0) FROM refunds AS _r WHERE _r.held_ref = " + ref + " AND _r.held_ref <> ''" +
		" AND NOT " + moves.Words("_r.status", UnusedRefunds...) + ")" +
		" - (SELECT coalesce(CAST(sum(_d.reinstated - _d.amount) AS BIGINT), 0) FROM disputes AS _d WHERE _d.held_ref = " + ref +
		" AND _d.held_ref <> '' AND _d.withdrawn)"
}

// heldRefs returns the refs for all payments in the batch.
func (b *batch) heldRefs() []string {
	refs := make([]string, 0, len(b.items))
	for _, m := range b.items {
		if m.Content.Status == supplier.Paid {
			refs = append(refs, m.heldRef())
		}
	}
	return refs
}

// addHeld adds a row of heldMoney.
func (b *batch) addHeld(a *Attempt) {
	b.held[a.SupplierRef] = &held{
		account: a.SupplierTradeNo, currency: string(a.Status), amount: a.Amount, rows: a.OrderID,
		// What was refunded of it moves along to an order, even all of it.
		there: a.OrderID > 0 || a.CreatedAt == a.Amount, disputed: a.UpdatedAt > 0,
	}
}

// suspend books the money of an exception in suspense, unless that trade is already booked;
// then the exception names the entry that holds it, if any. Only what was certainly paid is
// booked.
func (b *batch) suspend(m *Message, x *exception.Item) {
	c := m.Content
	if c.Status != supplier.Paid || m.Unreadable != nil || c.Amount <= 0 || !exception.InSuspense(x.Kind) || b.booked[m.trade()] {
		return
	}
	ref := m.heldRef()
	h := b.held[ref]
	if h == nil {
		h = &held{account: ledger.SuspenseAccount(m.Supplier.Code), amount: c.Amount, currency: c.Currency, there: true}
		b.held[ref] = h
		b.hold(m.trade(), m.Supplier.ID, c.Amount)
		b.entries.Add(fact.Held, fact.Values{Supplier: m.Supplier.Code, ID: m.heldID(), Amount: c.Amount, Currency: c.Currency})
	}
	if h.there {
		x.HeldRef = ref
	}
}

// hold takes the trade number for money in suspense, in the same unique index in which payments
// take theirs. If two transactions that cannot see each other hold a payment and book it for an
// order, one of them fails and reads again.
func (b *batch) hold(t tradeKey, supplierID, amount int64) {
	if t.tradeNo == "" || b.trades[t] != 0 || b.holds[t] != 0 {
		return
	}
	d := b.p.o.DB
	now := d.Now()
	b.holding = append(b.holding, &Attempt{
		ID: d.NewID(), AccountID: t.account, SupplierID: supplierID, SupplierRef: "#" + t.tradeNo, // never an order's reference
		SupplierTradeNo: t.tradeNo, Status: SucceededSurplus, Amount: amount, CreatedAt: now, UpdatedAt: now,
	})
}

// takeTrades writes the trade numbers that are held, and releases those that attempts of orders
// take in this batch.
func (b *batch) takeTrades(w *db.Writes) {
	settled := map[tradeKey]bool{}
	var free []int64
	for _, a := range b.settled {
		t := tradeKey{a.AccountID, a.SupplierTradeNo}
		settled[t] = settled[t] || a.settled()
		if id := b.holds[t]; id != 0 && a.settled() {
			free = append(free, id)
			delete(b.holds, t)
		}
	}
	if len(free) > 0 {
		w.Guard(b.tx.NewRaw("DELETE FROM payment_attempts WHERE id IN (?) AND order_id = 0", bun.List(free)), len(free))
	}
	b.holding = slices.DeleteFunc(b.holding, func(a *Attempt) bool { return settled[tradeKey{a.AccountID, a.SupplierTradeNo}] })
	writeHolding(w, b.holding)
}

// writeHolding writes attempts without an order. The transaction is stale if one of them is
// stored already, or its trade number has paid an order by now.
func writeHolding(w *db.Writes, rows []*Attempt) {
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b *Attempt) int { return cmp.Compare(a.SupplierTradeNo, b.SupplierTradeNo) })
	w.GuardInsert(&rows, "CONFLICT DO NOTHING")
}

// FreeStaged releases the trade numbers that an import is about to write.
func FreeStaged(tx db.Tx, runID int64) *bun.RawQuery {
	return tx.NewRaw("DELETE FROM payment_attempts WHERE order_id = 0 AND EXISTS (SELECT 1 FROM import_orders AS s WHERE s.run_id = ?"+
		" AND s.account_id = payment_attempts.account_id AND s.supplier_trade_no = payment_attempts.supplier_trade_no AND s.attempt_status = ?)", runID, Succeeded)
}

// EndImported ends what is open about the payments that an import is about to write: another
// system has booked them, so that money held for them leaves suspense again.
func EndImported(ctx context.Context, tx db.Tx, d *db.DB, runID int64) error {
	var rows []struct {
		ID, OrderID      int64
		OrderNo, HeldRef string
	}
	err := tx.NewRaw("SELECT x.id, s.id AS order_id, s.order_no, x.held_ref FROM import_orders AS s JOIN exceptions AS x"+
		" ON x.subject = s.supplier_trade_no JOIN suppliers AS su ON su.id = x.supplier_id AND su.account_id = s.account_id"+
		" WHERE s.run_id = ? AND s.attempt_status = ? AND s.supplier_trade_no <> '' AND "+
		moves.Words("x.kind", exception.PaidKinds...)+" AND "+exception.Moves.In("x.state", exception.Moves.Open()...),
		runID, Succeeded).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return err
	}
	w := tx.Writes()
	freed := map[string]bool{}
	var entries fact.Entries
	for _, x := range rows {
		if x.HeldRef != "" && !freed[x.HeldRef] {
			freed[x.HeldRef] = true
			lines, err := ledger.Lines(ctx, tx, []string{x.HeldRef})
			if err != nil {
				return err
			}
			for _, held := range lines {
				entries.Add(fact.Corrected, fact.Values{
					From: held.Credit, To: held.Debit, ID: strconv.FormatInt(x.OrderID, 10), Amount: held.Amount, Currency: held.Currency,
				})
			}
			w.Add(unname(tx, x.HeldRef))
		}
		w.Add(exception.EndPaid(tx, d, x.OrderNo, x.ID))
	}
	if err := ledger.New(d).Post(ctx, tx, w, entries); err != nil {
		return err
	}
	return w.Exec(ctx)
}

// source returns the account that pays an order: suspense if the trade is held there, else the
// supplier's. If another amount was held, it is corrected first.
func (b *batch) source(m *Message, o *order.Order) string {
	pays, ref := ledger.SupplierAccount(m.Supplier.Code), m.heldRef()
	h := b.held[ref]
	if h == nil || !h.there {
		return pays
	}
	h.there = false
	b.freed = append(b.freed, ref)
	holder := ledger.SupplierAccount(ledger.OfSuspense(h.account))
	fix := fact.Values{
		From: holder, To: h.account, ID: strconv.FormatInt(o.ID, 10), Amount: m.Content.Amount - h.amount,
		Currency: h.currency,
	}
	from := h.account
	if h.currency != o.Currency {
		fix.Amount, from = -h.amount, pays
	}
	if fix.Amount < 0 {
		fix.From, fix.To, fix.Amount = fix.To, fix.From, -fix.Amount
	}
	if fix.Amount > 0 {
		b.entries.Add(fact.Corrected, fix)
	}
	return from
}

// free removes the freed entries from the exceptions that name them. Two transactions that
// would take the same money cannot both commit.
func (b *batch) free(w *db.Writes) {
	for _, ref := range b.freed {
		for _, x := range b.exceptions {
			if x.HeldRef == ref {
				x.HeldRef = ""
			}
		}
		if n := b.held[ref].rows; n > 0 {
			w.Guard(unname(b.tx, ref), int(n))
		}
	}
}

func unname(tx db.Tx, ref string) *bun.RawQuery {
	return tx.NewRaw("UPDATE exceptions SET held_ref = '' WHERE held_ref = ? AND held_ref <> ''", ref)
}

// ending is how an exception about a trade number was decided.
type ending struct {
	SupplierID int64
	Kind       string
	Subject    string
	OrderNo    string
	Outcome    exception.Outcome
	Amount     int64
	Currency   string
}

// reverses reports whether the message says that a payment was returned.
func (m *Message) reverses() bool {
	return m.Content.Status == supplier.Refunded || m.Content.Status == supplier.Closed && m.Content.Reverses
}

// readDecided reads the decisions about trade numbers that were returned or have no order.
func (b *batch) readDecided(ctx context.Context) error {
	var suppliers []int64
	var trades []string
	for _, m := range b.items {
		if c := m.Content; c.TradeNo != "" && (m.reverses() || c.Status == supplier.Paid && b.orders[m.orderRef()] == nil) {
			suppliers, trades = append(suppliers, m.Supplier.ID), append(trades, c.TradeNo)
		}
	}
	if len(trades) == 0 {
		return nil
	}
	var rows []ending
	err := b.tx.NewRaw("SELECT x.supplier_id, x.kind, x.subject, x.order_no, x.outcome, x.amount, x.currency FROM exceptions AS x"+
		" WHERE x.kind IN (?) AND x.supplier_id IN (?) AND x.subject IN (?) AND x.state = ? AND x.decided_by <> 0",
		bun.List(exception.SuspenseKinds), bun.List(suppliers), bun.List(trades), exception.Resolved).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("find what was decided: %w", err)
	}
	b.decided = map[tradeKey][]ending{}
	for _, x := range rows {
		key := tradeKey{x.SupplierID, x.Subject}
		b.decided[key] = append(b.decided[key], x)
	}
	return nil
}

// wasDecided reports whether an approval has already handled what the message says: the payment
// was returned, was booked for an order that the message does not name, or was held and has left
// suspense. A message with another amount tells something new.
func (b *batch) wasDecided(m *Message, o *order.Order) bool {
	c := m.Content
	if h := b.held[m.heldRef()]; c.Status == supplier.Paid && !b.booked[m.trade()] && h != nil && !h.there && !h.disputed {
		return c.Amount == h.amount && c.Currency == h.currency
	}
	return slices.ContainsFunc(b.decided[tradeKey{m.Supplier.ID, c.TradeNo}], func(x ending) bool {
		if m.reverses() {
			return x.Outcome == exception.RefundedElsewhere
		}
		return o == nil && x.Kind == exception.UnknownOrder && x.Outcome == exception.Accepted && x.OrderNo == m.orderRef() &&
			x.Amount == c.Amount && x.Currency == c.Currency
	})
}

// LedgerRefs returns the refs of all ledger transfers that an order may have under its own id.
func LedgerRefs(orderID int64) []string {
	id := fact.Values{ID: strconv.FormatInt(orderID, 10)}
	return []string{fact.Ref(fact.Paid, id), fact.Ref(fact.Corrected, id), fact.Ref(fact.Fee, id), fact.Ref(fact.Cost, id)}
}

// ErrNoMerchant means that the held money belongs to no known merchant.
var ErrNoMerchant = errors.New("it is not known which merchant the money belongs to")

// SettleHeld takes the money held for an exception out of suspense, because an approval says
// that it was settled elsewhere: if kept, it is the merchant's, otherwise the supplier no
// longer owes it. It does nothing if nothing is held. Errors: ErrNoMerchant, act.ErrChanged.
func (p *Processor) SettleHeld(ctx context.Context, tx db.Tx, x *exception.Item, approvalID int64, kept bool) error {
	if x.HeldRef == "" {
		return nil
	}
	res, err := unname(tx, x.HeldRef).Exec(ctx)
	if err != nil {
		return fmt.Errorf("take money out of suspense: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, act.ErrChanged)
	}
	lines, err := ledger.Lines(ctx, tx, []string{x.HeldRef})
	if err != nil {
		return err
	}
	if len(lines) != 1 {
		return fmt.Errorf("the exception %d names the entry %q, which is not stored", x.ID, x.HeldRef)
	}
	held := lines[0]
	var taken int64
	if err := tx.NewRaw("SELECT "+TakenOfHeld("?0"), x.HeldRef).Scan(ctx, &taken); err != nil {
		return fmt.Errorf("read what is left in suspense: %w", err)
	}
	if held.Amount -= taken; held.Amount <= 0 {
		return act.ErrChanged
	}
	v := fact.Values{
		Supplier: ledger.OfSuspense(held.Credit), To: held.Debit, ID: strconv.FormatInt(approvalID, 10), Amount: held.Amount,
		Currency: held.Currency,
	}
	if kept {
		if x.MerchantID == 0 {
			return ErrNoMerchant
		}
		v.To = ledger.MerchantAccount(p.merchantCode(x.MerchantID))
	}
	w := tx.Writes()
	if err := p.o.Ledger.Post(ctx, tx, w, fact.Entries{fact.Entry(fact.Elsewhere, v)}); err != nil {
		return err
	}
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("take money out of suspense: %w", err)
	}
	return nil
}
