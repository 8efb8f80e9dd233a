package console

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/act"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/list"
)

// A callback is in one of two tables that share one series of ids: authentic callbacks, and
// those refused on receipt, which belong to no order.
const (
	takenTable   = "callbacks"
	refusedTable = "refused_callbacks"
)

// CallbackList declares the list of callbacks.
var CallbackList = list.New(list.Spec{
	Name: "callbacks", SumRows: 5000, CauseField: "outcome",
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
		{Name: "no", Match: ofOrder}, // also the reference of a callback without an order
		{Name: "supplier", Match: ofSupplier, Suggest: codes("suppliers", "name")},
		{Name: "outcome", Match: matchOutcome, Values: outcomes()},
		{Name: "refused", Match: takenOnly, Values: []string{"no"}},
	},
})

// outcomes returns the outcomes of callbacks, exceptions last.
func outcomes() []string {
	all := slices.DeleteFunc(slices.Clone(callback.Outcomes), func(o string) bool { return slices.Contains(exception.Kinds, o) })
	return append(slices.Sorted(slices.Values(append(all, callback.Unavailable))), slices.Sorted(slices.Values(exception.Kinds))...)
}

func ofOrder(_ context.Context, in list.Lookup, no string) (list.Match, error) {
	return list.Match{Where: "c.order_no = ?", Args: []any{no}, None: in.Source.Table == refusedTable, Indexed: true, AnyAge: true}, nil
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
	return page, b.addCallbackMoney(ctx, page.Rows)
}

// CallbackDetail is one callback, refused or not, with its full content.
type CallbackDetail struct {
	Callback
	OrderNo       string `bun:"order_no"` // as named in the message
	OrderID       int64  `bun:"order_id"` // 0 = no such order
	Refused       bool   `bun:"-"`
	CallbackMoney `bun:"-"`
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
		if c.Refused {
			return c, nil
		}
		paid, err := b.callbackMoney(ctx, []int64{c.ID})
		c.CallbackMoney = paid[c.ID]
		return c, err
	}
	return nil, act.ErrNotFound
}
