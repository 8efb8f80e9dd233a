package console

import (
	"context"
	"slices"

	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// States of exceptions that stand for several.
const (
	NeedsPerson = "needs"   // nothing goes on until a person acts
	Unsettled   = "waiting" // neither resolved nor ignored
)

// ExceptionList declares the list of exceptions. Nobody made many of them by being
// busy, and what waits for a person waits for as long as it takes: where the state or
// the kind is given, an index finds them however old they are.
var ExceptionList = &list.Spec{
	Name: "exceptions",
	Sources: []list.Source{{
		Table: "exceptions", Alias: "x", Key: "id",
		Money: list.Money{Minor: "x.amount", Currency: "x.currency"}, MerchantColumn: "x.merchant_id",
	}},
	Fields: []list.Field{
		{Word: "no", Column: "order_no", Indexed: true}, // also the reference of a callback that found no order
		{Word: "kind", Column: "kind", Indexed: true, Values: slices.Sorted(slices.Values(exception.Kinds))},
		{Word: "state", Match: matchState, Values: append([]string{NeedsPerson, Unsettled}, exception.Moves.Words()...)},
		{Word: "assignee", Column: "assignee", Suggest: operatorNames},
		{Word: "supplier", Match: coded("suppliers", "x.supplier_id"), Suggest: codes("suppliers", "kind")},
		{Word: "merchant", Match: coded("merchants", "x.merchant_id"), Suggest: codes("merchants", "name")},
		atRisk("exceptions", func(r report.Rows) list.Match { return list.Match{Where: r.Where, Args: r.Args, Indexed: true} }),
	},
}

func matchState(_ context.Context, in list.Lookup, state string) (list.Match, error) {
	states := []exception.State{exception.State(state)}
	switch state {
	case NeedsPerson:
		states = exception.Moves.NeedsPerson()
	case Unsettled:
		states = exception.Moves.Open()
	}
	m := list.Match{Where: "x.state IN (?)", Args: []any{bun.List(states)}, Indexed: true}
	if in.Query.Get("kind") == "" && in.Query.Get("no") == "" {
		m.Where, m.Args = "x.kind IN (?) AND "+m.Where, []any{bun.List(exception.Kinds), bun.List(states)} // leads the index
	}
	return m, nil
}

// Exceptions is one page of exceptions.
func (b *Reader) Exceptions(ctx context.Context, q list.Query, s list.Slice) (list.Page[exception.Item], error) {
	page, err := list.Read(ctx, b.db, q, s, func(i *exception.Item) int64 { return i.ID })
	for i := range page.Rows {
		MaskException(&page.Rows[i])
	}
	return page, err
}

// Lanes are the kinds of exceptions that wait for a person, with their counts, their money
// and the oldest.
func (b *Reader) Lanes(ctx context.Context) ([]Todo, error) { return b.todoExceptions(ctx) }
