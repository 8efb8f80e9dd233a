package payment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// read loads and locks everything that the items may touch, orders first and by id, which
// prevents deadlocks.
func (b *batch) read(ctx context.Context) error {
	refs := make([]string, 0, len(b.items))
	trades := make([]string, 0, len(b.items))
	for _, m := range b.items {
		if ref := m.orderRef(); ref != "" {
			refs = append(refs, ref)
		}
		for _, t := range m.tradesOf() {
			if t.tradeNo != "" {
				trades = append(trades, t.tradeNo)
			}
		}
		if !slices.Contains(b.accounts, m.Supplier.AccountID) {
			b.accounts = append(b.accounts, m.Supplier.AccountID)
		}
	}
	nos, err := b.paidNos(ctx)
	if err != nil {
		return err
	}
	if err := b.readPaid(ctx, slices.Concat(refs, nos), trades); err != nil {
		return err
	}
	if err := b.readByAttempt(ctx, refs, trades); err != nil {
		return err
	}
	if err := b.readFees(ctx); err != nil {
		return err
	}
	if err := b.readUnknown(ctx); err != nil {
		return err
	}
	if err := b.readDecided(ctx); err != nil {
		return err
	}
	if err := b.findByTrade(); err != nil {
		return err
	}
	if err := b.readReturned(ctx); err != nil {
		return err
	}
	return b.readRefunds(ctx)
}

// readUnknown counts the open exceptions of the unknown types that are reported.
func (b *batch) readUnknown(ctx context.Context) error {
	b.unknown = map[unknownType]int{}
	for _, m := range b.items {
		t := m.unknownType()
		if _, counted := b.unknown[t]; counted || m.Content.Status != supplier.Unknown {
			continue
		}
		var n int
		err := b.tx.NewRaw("SELECT count(*) FROM (SELECT 1 FROM exceptions AS x WHERE x.kind = ? AND x.supplier_id = ? AND x.detail->>'type' = ? AND "+
			exception.Moves.In("x.state", exception.Moves.Open()...)+" LIMIT ?) AS open", exception.UnknownEvent, t.supplierID, t.word, maxUnknown).Scan(ctx, &n)
		if err != nil {
			return fmt.Errorf("count messages of unknown types: %w", err)
		}
		b.unknown[t] = n
	}
	return nil
}

// readByAttempt finds the orders of references that are not order numbers: those of second
// attempts.
func (b *batch) readByAttempt(ctx context.Context, refs, trades []string) error {
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return b.orders[ref] != nil })
	if len(refs) == 0 {
		return nil
	}
	var rows []*Attempt
	if err := b.tx.NewSelect().Model(&rows).Where("pa.account_id IN (?)", bun.List(b.accounts)).
		Where("pa.supplier_ref IN (?)", bun.List(refs)).Scan(ctx); err != nil {
		return fmt.Errorf("find attempts: %w", err)
	}
	if len(rows) == 0 {
		return nil
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
		for _, m := range b.items {
			if m.orderRef() == a.SupplierRef && m.Supplier.AccountID == a.AccountID {
				b.orders[a.SupplierRef] = byID[a.OrderID]
			}
		}
	}
	// What was read before these were locked may have changed since.
	var nos []string
	all := slices.Collect(maps.Values(b.orders))
	for _, o := range all {
		nos = append(nos, o.OrderNo)
	}
	r := b.tx.Reads()
	b.addAround(r, nos, trades)
	if err := r.Exec(ctx); err != nil {
		return fmt.Errorf("read attempts and keys: %w", err)
	}
	return b.readPaidBy(ctx, all)
}

// readPaid locks the orders with these numbers, and loads what is around them in the same round trip.
func (b *batch) readPaid(ctx context.Context, nos, trades []string) error {
	r := b.tx.Reads()
	var orders []*order.Order
	if len(nos) > 0 {
		order.ReadByNos(r, b.p.o.DB, nos, &orders)
	}
	b.addAround(r, nos, trades)
	if err := r.Exec(ctx); err != nil {
		return fmt.Errorf("read orders, attempts and keys: %w", err)
	}
	b.orders = make(map[string]*order.Order, len(nos))
	for _, o := range orders {
		b.orders[o.OrderNo] = o
	}
	return b.readPaidBy(ctx, orders)
}

// addAround adds a read of the attempts of orders, the orders settled by trade numbers, the money
// held for them, exceptions about them, and callbacks taken before. It is one query: most of this is
// rare, and a separate statement would slow down every payment. It must begin when the orders are
// locked, to see what was committed until then.
//
// Trade numbers are looked up without their account, and keys by pairs: without statistics the
// planner would otherwise read all rows of an account.
func (b *batch) addAround(r *db.Reads, nos, trades []string) {
	var keys []callbackKey
	for _, m := range b.items {
		if m.Source.Record != nil {
			keys = append(keys, callbackKey{m.Supplier.AccountID, m.Content.EventKey})
		}
	}
	b.attempts, b.trades, b.known, b.returned = map[int64][]*Attempt{}, map[tradeKey]int64{}, map[eventKey]int64{},
		map[tradeKey]*order.Order{}
	b.booked, b.held, b.holds, b.reported = map[tradeKey]bool{}, map[string]*held{}, map[tradeKey]int64{}, map[tradeKey]bool{}
	b.about, b.ended, b.byTrade = map[tradeKey][]int64{}, map[string][]int64{}, map[tradeKey]*order.Order{}
	r.Add(b.addRow, "WITH _k ? "+attemptRows+" WHERE order_id IN (SELECT id FROM orders WHERE order_no IN (?)) UNION ALL "+attemptRows+
		" WHERE supplier_trade_no IN (?) AND "+hasTrade+" UNION ALL "+heldMoney+" UNION ALL "+reportedTrades+" UNION ALL "+knownKeys+
		" UNION ALL "+openAbout, bulk.Each(&keys), nos, trades, b.heldRefs(), trades, b.paying())
}

// readPaidBy reads the callbacks that paid orders, as those have no key.
func (b *batch) readPaidBy(ctx context.Context, orders []*order.Order) error {
	var paidBy []int64
	for _, o := range orders {
		if o.PaidCallback != nil {
			paidBy = append(paidBy, *o.PaidCallback)
		}
	}
	if len(paidBy) == 0 {
		return nil
	}
	r := b.tx.Reads()
	r.Add(b.addKey,
		"SELECT s.account_id, c.event_key, c.digest, c.id FROM callbacks AS c JOIN suppliers AS s ON s.id = c.supplier_id WHERE c.id IN (?)", paidBy)
	if err := r.Exec(ctx); err != nil {
		return fmt.Errorf("read the callbacks that paid: %w", err)
	}
	return nil
}

// paying returns the trade numbers that messages of the batch say are paid.
func (b *batch) paying() (trades []string) {
	for _, m := range b.items {
		if c := m.Content; c.Status == supplier.Paid && c.TradeNo != "" {
			trades = append(trades, c.TradeNo)
		}
	}
	return trades
}

// findByTrade finds the orders of messages that name none, among those that are locked. Errors:
// db.ErrStale if one was paid since paidNos.
func (b *batch) findByTrade() error {
	for _, m := range b.items {
		id := b.trades[m.trade()]
		if !m.unnamed() || !b.booked[m.trade()] {
			continue
		}
		for _, o := range b.orders {
			if o != nil && o.ID == id {
				b.byTrade[m.trade()] = o
			}
		}
		if b.byTrade[m.trade()] == nil {
			return db.ErrStale
		}
	}
	return nil
}

// attemptRows selects attempts as addRow scans them. Other kinds of rows have these columns and one
// of the ids below instead of their own.
const attemptRows = "SELECT id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at, supplier_id, external_id FROM payment_attempts"

const (
	heldRow     = 0  // of heldMoney
	reportedRow = -1 // of reportedTrades
	keyRowID    = -2 // of knownKeys
	aboutRow    = -3 // of openAbout
)

// knownKeys selects callbacks taken before by their keys, _k.
const knownKeys = "SELECT -2, k.callback_id, k.account_id, k.event_key, k.digest, '', 0, 0, 0, 0, '' FROM callback_keys AS k, _k" +
	" WHERE k.account_id = _k.account_id AND k.event_key = _k.event_key"

// openAbout selects open exceptions about trade numbers.
var openAbout = "SELECT -3, a.id, a.account_id, '', a.subject, '', 0, 0, 0, 0, '' FROM (" + exception.OpenAbout + ") AS a"

// callbackKey is a key for knownKeys.
type callbackKey struct {
	AccountID int64
	EventKey  string
}

// addRow adds an attempt, which may be found by its order as well as by its trade number, or a row
// of another kind.
func (b *batch) addRow(row db.Row) error {
	a := new(Attempt)
	if err := row.Scan(&a.ID, &a.OrderID, &a.AccountID, &a.SupplierRef, &a.SupplierTradeNo, &a.Status, &a.Amount, &a.CreatedAt,
		&a.UpdatedAt, &a.SupplierID, &a.ExternalID); err != nil {
		return err
	}
	trade := tradeKey{a.AccountID, a.SupplierTradeNo}
	switch a.ID {
	case heldRow:
		b.addHeld(a)
		return nil
	case reportedRow:
		b.reported[trade] = true
		return nil
	case keyRowID:
		b.known[eventKey{a.AccountID, a.SupplierRef, a.SupplierTradeNo}] = a.OrderID
		return nil
	case aboutRow:
		b.about[trade] = append(b.about[trade], a.OrderID)
		return nil
	}
	if a.OrderID == 0 {
		b.holds[tradeKey{a.AccountID, a.SupplierTradeNo}] = a.ID
		return nil
	}
	if a.settled() && a.SupplierTradeNo != "" {
		b.booked[tradeKey{a.AccountID, a.SupplierTradeNo}] = b.booked[tradeKey{a.AccountID, a.SupplierTradeNo}] || a.Status == Succeeded
		b.trades[tradeKey{a.AccountID, a.SupplierTradeNo}] = a.OrderID
	}
	same := func(x *Attempt) bool { return x.ID == a.ID }
	if !slices.ContainsFunc(b.attempts[a.OrderID], same) {
		b.attempts[a.OrderID] = append(b.attempts[a.OrderID], a)
	}
	return nil
}

func (b *batch) addKey(row db.Row) error {
	var key eventKey
	var callbackID int64
	err := row.Scan(&key.account, &key.key, &key.digest, &callbackID)
	b.known[key] = callbackID
	return err
}

// readReturned finds the orders of disputes and refunds by trade number, because such messages
// need not have a reference of ours: the order paid by that number, or that of an exception about
// money held by the supplier.
func (b *batch) readReturned(ctx context.Context) error {
	ids, held := map[tradeKey]int64{}, []string{}
	for _, m := range b.items {
		if !m.goesBack() {
			continue
		}
		for _, t := range m.tradesOf() {
			if id := b.trades[t]; id != 0 {
				ids[t] = id
			} else if t.tradeNo != "" {
				held = append(held, t.tradeNo)
			}
		}
	}
	if len(held) > 0 {
		var rows []struct {
			AccountID int64
			Subject   string
			OrderID   int64
		}
		err := b.tx.NewRaw("SELECT su.account_id, x.subject, x.order_id FROM suppliers AS su JOIN exceptions AS x ON x.supplier_id = su.id"+
			" WHERE su.account_id IN (?) AND x.kind IN (?) AND x.subject IN (?) AND x.order_id <> 0",
			bun.List(b.accounts), bun.List(exception.HeldKinds), bun.List(held)).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("find held money by trade number: %w", err)
		}
		for _, x := range rows {
			ids[tradeKey{x.AccountID, x.Subject}] = x.OrderID
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []*order.Order
	if err := b.tx.NewSelect().Model(&rows).Where("o.id IN (?)", bun.List(slices.Collect(maps.Values(ids)))).Scan(ctx); err != nil {
		return fmt.Errorf("find orders by trade number: %w", err)
	}
	for trade, id := range ids {
		i := slices.IndexFunc(rows, func(o *order.Order) bool { return o.ID == id })
		if i < 0 {
			continue
		}
		b.returned[trade] = rows[i]
		if locked := b.orders[rows[i].OrderNo]; locked != nil {
			b.returned[trade] = locked
		} else if b.booked[trade] && (b.p.o.Disputes != nil || b.p.o.Refunds != nil) {
			return db.ErrStale // it was paid since paidNos, and is not locked
		}
	}
	return nil
}
