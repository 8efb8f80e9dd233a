package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/act"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/payment"
	"backstop/internal/supplier"
)

// A callback is in one of two tables that share one series of ids: authentic callbacks, and
// those refused on receipt, which belong to no order.
const (
	takenTable   = "callbacks"
	refusedTable = "refused_callbacks"
)

// CallbackList declares the list of callbacks.
var CallbackList = list.New(list.Spec{
	Name: "callbacks", SumRows: 5000, CauseWord: "outcome",
	Sources: []list.Source{
		{
			Table: takenTable, Alias: "c", Key: "id",
			MerchantColumn: "COALESCE((SELECT o.merchant_id FROM orders AS o WHERE o.id = c.order_id), 0)",
			Columns: "c.id, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier," +
				" c.received_at, c.remote_addr, c.outcome, c.order_no, c.order_id, c.steps",
		},
		{
			Table: refusedTable, Alias: "c", Key: "id", MerchantColumn: list.NoMerchant, Cause: "c.outcome",
			Columns: "c.id, c.supplier, c.received_at, c.remote_addr, c.outcome, '' AS order_no, 0 AS order_id, c.steps",
		},
	},
	Fields: []list.Field{
		{Word: "no", Match: ofOrder}, // also the reference of a callback without an order
		{Word: "supplier", Match: ofSupplier, Suggest: codes("suppliers", "name")},
		{Word: "outcome", Match: matchOutcome, Values: outcomes()},
		{Word: "refused", Match: takenOnly, Values: []string{"no"}},
	},
})

// outcomes returns the outcomes of callbacks, exceptions last.
func outcomes() []string {
	all := slices.DeleteFunc(slices.Clone(callback.Outcomes), func(o string) bool { return slices.Contains(exception.Kinds, o) })
	return append(slices.Sorted(slices.Values(append(all, callback.Unavailable))), slices.Sorted(slices.Values(exception.Kinds))...)
}

func ofOrder(_ context.Context, in list.Lookup, no string) (list.Match, error) {
	return list.Match{Where: "c.order_no = ?", Args: []any{no}, None: in.Source.Table == refusedTable, Indexed: true, Ageless: true}, nil
}

func ofSupplier(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
	if in.Source.Table == refusedTable { // keeps the code of the URL, even if no supplier has it
		return list.Match{Where: "c.supplier = ?", Args: []any{code}}, nil
	}
	return coded("suppliers", "c.supplier_id")(ctx, in, code)
}

func matchOutcome(_ context.Context, in list.Lookup, outcome string) (list.Match, error) {
	none := callback.IsRefusal(outcome) != (in.Source.Table == refusedTable)
	return list.Match{Where: "c.outcome = ?", Args: []any{outcome}, None: none}, nil
}

// takenOnly excludes refused callbacks.
func takenOnly(_ context.Context, in list.Lookup, value string) (list.Match, error) {
	return list.Match{None: value == "no" && in.Source.Table == refusedTable}, nil
}

// Callbacks reads one page of callbacks.
func (b *Reader) Callbacks(ctx context.Context, q list.Query, s list.Slice) (list.Page[callback.Row], error) {
	page, err := list.Read(ctx, b.db, q, s, func(r *callback.Row) int64 { return r.ID })
	if err != nil {
		return page, err
	}
	for i := range page.Rows {
		MaskCallback(&page.Rows[i])
	}
	return page, nil
}

// CallbackDetail is one callback, refused or not, with its full content.
type CallbackDetail struct {
	Callback
	OrderNo string `bun:"order_no"` // as named in the message
	OrderID int64  `bun:"order_id"` // 0 = no such order
	Refused bool   `bun:"-"`
	// Minor is what a message about a payment says was paid; Currency "" = it is not known.
	Minor    int64  `bun:"-"`
	Currency string `bun:"-"`
	// OrderMinor is the amount of its order; OrderCurrency "" = it has none.
	OrderMinor    int64  `bun:"-"`
	OrderCurrency string `bun:"-"`
}

// Mask hides personal data of the buyer.
func (c *CallbackDetail) Mask() { c.mask(maskerOf(c.OrderNo)) }

// detailRows bounds how many attempts or acts a detail page shows.
const detailRows = 200

// CallbackDetail reads one callback. Errors: act.ErrNotFound.
func (b *Reader) CallbackDetail(ctx context.Context, id int64) (*CallbackDetail, error) {
	for _, q := range []string{
		"SELECT " + storyCallback +
			", c.body, c.order_no, c.order_id FROM callbacks AS c LEFT JOIN callback_repeats AS cr ON cr.callback_id = c.id WHERE c.id = ?",
		"SELECT c.id, c.outcome, c.received_at, c.remote_addr, c.method, c.query, c.headers, length(c.body) AS size, c.supplier, c.body, c.steps" +
			" FROM refused_callbacks AS c WHERE c.id = ?",
	} {
		var rows []CallbackDetail
		if err := b.db.Read.NewRaw(q, id).Scan(ctx, &rows); err != nil {
			return nil, fmt.Errorf("read a callback: %w", err)
		}
		if len(rows) == 0 {
			continue
		}
		c := &rows[0]
		c.Refused = strings.Contains(q, refusedTable)
		return c, b.addCallbackMoney(ctx, c)
	}
	return nil, act.ErrNotFound
}

// addCallbackMoney reads the amount of the order of a callback, and that of the callback: its exception
// has it, or else it passed the comparison with the order's.
func (b *Reader) addCallbackMoney(ctx context.Context, c *CallbackDetail) error {
	if c.OrderID != 0 {
		err := b.db.Read.NewRaw("SELECT o.amount, o.currency FROM orders AS o WHERE o.id = ?", c.OrderID).Scan(ctx, &c.OrderMinor, &c.OrderCurrency)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read the order of a callback: %w", err)
		}
	}
	if c.Refused || c.OrderNo == "" {
		return nil
	}
	err := b.db.Read.NewRaw("SELECT x.amount, x.currency FROM exceptions AS x WHERE x.order_no = ? AND x.kind = ? AND x.subject = ?"+
		" ORDER BY x.id DESC LIMIT 1", c.OrderNo, c.Outcome, c.TradeNo).Scan(ctx, &c.Minor, &c.Currency)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if slices.ContainsFunc(c.Steps, func(s supplier.Step) bool { return s.Name == payment.AmountStep && s.OK }) {
			c.Minor, c.Currency = c.OrderMinor, c.OrderCurrency
		}
	case err != nil:
		return fmt.Errorf("read the amount of a callback: %w", err)
	}
	return nil
}
