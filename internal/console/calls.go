package console

import (
	"context"
	"fmt"

	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// CallList declares the list of calls to suppliers.
var CallList = list.New(list.Spec{
	Name: "calls",
	Sources: []list.Source{{
		Table: "supplier_calls", Alias: "c", Key: "id",
		MerchantColumn: "COALESCE((SELECT o.merchant_id FROM orders AS o WHERE o.id = c.order_id), 0)",
		Columns:        "c.*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier",
	}},
	Fields: []list.Field{
		{Name: "order_no", Match: byNumber("c.order_id IN (SELECT o.id FROM orders AS o WHERE o.order_no = ?)")},
		{Name: "supplier", Match: coded("suppliers", "c.supplier_id"), Suggest: codes("suppliers", "name")},
		{Name: "op", Column: "op", Values: words(suppliercall.Ops)},
		{Name: "class", Column: "class", Values: words(supplier.Classes)},
	},
})

// words converts string-typed values to strings.
func words[W ~string](all []W) []string {
	texts := make([]string, len(all))
	for i, w := range all {
		texts[i] = string(w)
	}
	return texts
}

// Call is one call to a supplier as listed. Its texts were masked before they were stored.
type Call struct {
	suppliercall.Row `bun:",extend"`

	Supplier string `bun:"supplier,scanonly"` // code
}

// Asking describes how an open order's supplier is being queried.
type Asking struct {
	Supplier string       // code
	Breaker  *breaker.Row // nil = closed
	Last     *Call        // the newest query; nil = none
}

// addCalls reads the calls about an order, and whether its supplier will be queried again.
func (b *Reader) addCalls(ctx context.Context, s *Story) error {
	rows, err := events[Call]{
		kind: ItemCall, key: "c.id", keyOf: func(c *Call) int64 { return c.ID },
		columns: "c.*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier",
		from:    b.db.Read.NewSelect().TableExpr("supplier_calls AS c").Where("c.order_id = ?", s.Order.ID),
	}.read(ctx, b, s)
	if err != nil {
		return err
	}
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].StartedAt, Phase: PaymentPhase, Call: &rows[i]})
	}
	if s.Order.Status != order.Paying && s.Order.Status != order.Closing {
		return nil
	}
	at, err := payment.Moments(ctx, b.db.Read, []int64{s.Order.ID})
	if err != nil || len(at) == 0 {
		return err
	}
	to, ok := b.settings.Current().Suppliers.ByID(at[0].Supplier)
	if !ok || to.Can().Querier == nil {
		return nil
	}
	a := &Asking{Supplier: to.Code}
	for i := range rows {
		if rows[i].Op != suppliercall.Pay && rows[i].Status != suppliercall.NotMade {
			a.Last = &rows[i]
		}
	}
	if a.Breaker, err = breaker.Read(ctx, b.db.Read, recipient.OfSupplier(to.ID)); err != nil {
		return err
	}
	s.Asking = a
	return nil
}

// Calls reads one page of calls to suppliers.
func (b *Reader) Calls(ctx context.Context, q list.Query, s list.Slice) (list.Page[Call], error) {
	return list.Read(ctx, b.db, q, s, func(c *Call) int64 { return c.ID })
}

// Trial returns a call to a supplier that was about no order; nil = there is none with this id.
func (b *Reader) Trial(ctx context.Context, supplier string, id int64) (*Call, error) {
	var rows []Call
	err := b.db.Read.NewRaw("SELECT c.*, su.code AS supplier FROM supplier_calls AS c JOIN suppliers AS su ON su.id = c.supplier_id"+
		" WHERE c.id = ? AND c.order_id = 0 AND su.code = ?", id, supplier).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read a call: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}
