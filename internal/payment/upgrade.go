package payment

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/exception"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// holdStep is how many exceptions one transaction of HoldOpen handles.
const holdStep = 100

// maxHoldTries bounds how often HoldOpen repeats a step that lost against callbacks.
const maxHoldTries = 20

// Read parses a stored callback again, as its adapter did on receipt.
type Read func(supplier.Entry, *supplier.Request) (supplier.Callback, error)

// OpenHeld is the result of HoldOpen.
type OpenHeld struct {
	Entries int64 // entries booked
	Sums    money.Totals
	// Unknown counts exceptions without an order for which nothing stored says whether money
	// came.
	Unknown int64
}

// HoldOpen completes the exceptions that earlier versions left open: with the message, if its
// callback is still stored, and with the entry that holds the money. If interrupted it can be
// resumed; once done, it does nothing.
func (p *Processor) HoldOpen(ctx context.Context, read Read) (OpenHeld, error) {
	var all OpenHeld
	for tries := 1; ; {
		more, err := p.holdSome(ctx, read, &all)
		if db.IsConflict(err) && tries < maxHoldTries { // a callback took one of these payments meanwhile
			tries++
			continue
		}
		if err != nil {
			return all, fmt.Errorf("hold the money of open exceptions: %w", err)
		}
		if !more {
			return all, nil
		}
	}
}

// before is an exception of an earlier version, with what could be found out about it.
type before struct {
	*exception.Item
	id     string // of the entry that holds its money
	trade  tradeKey
	code   string // of the supplier
	paid   bool
	amount int64
}

func (p *Processor) holdSome(ctx context.Context, read Read, all *OpenHeld) (more bool, err error) {
	var upTo []int64
	if err := p.o.DB.Read.NewRaw("SELECT value FROM settings WHERE name = ?", ToHold).Scan(ctx, &upTo); err != nil || len(upTo) == 0 {
		return false, err
	}
	var rows []*exception.Item
	err = p.o.DB.Read.NewSelect().Model(&rows).Where("x.id <= ?", upTo[0]).Where("x.kind IN (?)", bun.List(exception.SuspenseKinds)).
		Where("x.state IN (?)", bun.List(exception.Moves.Open())).Where("x.held_ref = ''").OrderExpr("x.id DESC").Limit(holdStep).Scan(ctx)
	if err != nil {
		return false, err
	}
	found := make([]before, len(rows))
	for i, x := range rows {
		if found[i], err = p.look(ctx, read, x); err != nil {
			return false, err
		}
	}
	var did OpenHeld
	err = p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		did = OpenHeld{}
		mark := tx.NewRaw("DELETE FROM settings WHERE name = ? AND value = ?", ToHold, upTo[0])
		if len(rows) == holdStep {
			mark = tx.NewRaw("UPDATE settings SET value = ? WHERE name = ? AND value = ?", rows[len(rows)-1].ID-1, ToHold, upTo[0])
		}
		res, err := mark.Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 { // another process was faster
			return err
		}
		return p.holdFound(ctx, tx, found, &did)
	})
	if err != nil {
		return false, err
	}
	all.Entries, all.Unknown = all.Entries+did.Entries, all.Unknown+did.Unknown
	all.Sums.Merge(did.Sums)
	return true, nil
}

// look finds out what an exception is about.
func (p *Processor) look(ctx context.Context, read Read, x *exception.Item) (before, error) {
	var at []struct {
		Code      string
		AccountID int64
	}
	if err := p.o.DB.Read.NewRaw("SELECT code, account_id FROM suppliers WHERE id = ?", x.SupplierID).Scan(ctx, &at); err != nil ||
		len(at) == 0 {
		return before{Item: x}, err
	}
	var detail struct {
		TradeNo string `json:"trade_no"`
	}
	_ = json.Unmarshal(x.Detail, &detail) // empty if it cannot be parsed
	found := before{
		Item: x, id: heldID(at[0].AccountID, detail.TradeNo, x.OrderNo), trade: tradeKey{at[0].AccountID, detail.TradeNo},
		code: at[0].Code, amount: x.Amount, paid: x.Kind != exception.UnknownOrder, // the others are about nothing else
	}
	s, ok := p.o.Settings.Current().Suppliers.ByID(x.SupplierID)
	if !ok {
		return found, nil
	}
	stored, err := p.callbacksOf(ctx, x)
	for _, c := range stored {
		content, err := read(s, c.request())
		if err != nil || content.Amount != x.Amount || content.Currency != x.Currency {
			continue
		}
		m := &Message{Supplier: s, Content: content}
		x.Payload, x.CallbackID = m.payload(), stored[0].ID
		found.paid, found.id, found.trade = content.Status == supplier.Paid, m.heldID(), m.trade()
	}
	return found, err
}

// storedCallback is the stored part of a callback.
type storedCallback struct {
	ID         int64
	ReceivedAt int64
	RemoteAddr string
	Method     string
	Query      string
	Headers    string
	Body       []byte
}

// callbacksOf reads the callbacks behind an exception, and copies that outlived them.
func (p *Processor) callbacksOf(ctx context.Context, x *exception.Item) (rows []storedCallback, err error) {
	err = p.o.DB.Read.NewRaw(
		"SELECT c.id, c.received_at, c.remote_addr, c.method, c.query, c.headers, c.body FROM callbacks AS c WHERE c.order_no = ?0 AND c.outcome = ?1"+
			" AND c.supplier_id = ?2 AND (c.trade_no = ?3 OR c.event_key = ?3) UNION ALL"+
			" SELECT k.callback_id, k.received_at, k.remote_addr, k.method, k.query, k.headers, k.body FROM exception_callbacks AS k WHERE k.exception_id = ?4 AND k.size = length(k.body)"+
			" ORDER BY id LIMIT 20", x.OrderNo, x.Kind, x.SupplierID, x.Subject, x.ID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the callbacks of an exception: %w", err)
	}
	return rows, nil
}

// request returns the callback as received.
func (c *storedCallback) request() *supplier.Request {
	r := &supplier.Request{
		Method: c.Method, RawQuery: c.Query, Header: http.Header{}, Body: c.Body,
		ReceivedAt: time.UnixMicro(c.ReceivedAt).UTC(),
	}
	for line := range strings.Lines(c.Headers) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			r.Header.Add(name, value)
		}
	}
	r.RemoteAddr, _ = netip.ParseAddr(c.RemoteAddr) // none if it was unknown
	return r
}

// holdFound writes what was found, and books the money that is not booked yet.
func (p *Processor) holdFound(ctx context.Context, tx db.Tx, found []before, did *OpenHeld) error {
	b := &batch{
		p: p, tx: tx, held: map[string]*held{}, holds: map[tradeKey]int64{}, attempts: map[int64][]*Attempt{}, trades: map[tradeKey]int64{},
		booked: map[tradeKey]bool{},
	}
	var refs, trades []string
	for _, x := range found {
		refs, trades = append(refs, refOfHeld(x.id)), append(trades, x.trade.tradeNo)
	}
	if len(found) > 0 {
		if err := b.readBooked(ctx, refs, trades); err != nil {
			return err
		}
	}
	w := tx.Writes()
	for _, x := range found {
		ref := refOfHeld(x.id)
		h := b.held[ref]
		switch {
		case !x.paid && x.Payload == "":
			did.Unknown++
		case !x.paid || x.amount <= 0 || b.booked[x.trade]:
		case h == nil:
			b.held[ref] = &held{account: ledger.SuspenseAccount(x.code), there: true}
			b.entries.Add(fund.Held, fund.Values{Supplier: x.code, ID: x.id, Amount: x.amount, Currency: x.Currency})
			b.hold(x.trade, x.SupplierID, x.amount)
			did.Entries++
			did.Sums.Add(x.amount, x.Currency)
			x.HeldRef = ref
		default: // booked before: in this step, or by this version before a downgrade, which forgets its name
			x.HeldRef = ref
		}
		w.Add(tx.NewRaw("UPDATE exceptions SET payload = ?, callback_id = ?, held_ref = ? WHERE id = ? AND state IN (?) AND held_ref = ''",
			x.Payload, x.CallbackID, x.HeldRef, x.ID, bun.List(exception.Moves.Open())))
	}
	if err := p.o.Ledger.Post(ctx, tx, w, b.entries); err != nil {
		return err
	}
	writeHolding(w, b.holding)
	return w.Exec(ctx)
}

// readBooked reads what is booked for trades, in suspense or for an order.
func (b *batch) readBooked(ctx context.Context, refs, trades []string) error {
	r := b.tx.Reads()
	r.Add(b.addRow, attemptRows+" WHERE supplier_trade_no IN (?) AND "+hasTrade+" UNION ALL "+heldMoney,
		slices.Compact(slices.Sorted(slices.Values(trades))), refs)
	if err := r.Exec(ctx); err != nil {
		return fmt.Errorf("read what is booked: %w", err)
	}
	return nil
}
