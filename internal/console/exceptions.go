package console

import (
	"context"
	"slices"

	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Filter values that stand for several states.
const (
	NeedsPerson = "needs"   // nothing happens until an operator acts
	Unsettled   = "waiting" // neither resolved nor ignored
)

// ExceptionList declares the list of exceptions. Exceptions are few and may wait for a person
// for any length of time; if state or kind is given, an index finds them however old they are.
var ExceptionList = &list.Spec{
	Name: "exceptions",
	Sources: []list.Source{{
		Table: "exceptions", Alias: "x", Key: "id",
		Money: list.Money{Minor: "x.amount", Currency: "x.currency"}, MerchantColumn: "x.merchant_id",
	}},
	Fields: []list.Field{
		{Word: "no", Column: "order_no", Indexed: true}, // also the reference of a callback without an order
		{Word: "kind", Column: "kind", Indexed: true, Values: slices.Sorted(slices.Values(exception.Kinds))},
		{Word: "state", Match: matchState, Values: append([]string{NeedsPerson, Unsettled}, exception.Moves.Words()...)},
		{Word: "assignee", Column: "assignee", Suggest: operatorNames},
		{Word: "supplier", Match: matchExceptionSupplier, Suggest: codes("suppliers", "kind")},
		{Word: "merchant", Match: coded("merchants", "x.merchant_id"), Suggest: codes("merchants", "name")},
		{Word: "cause", Hidden: true, Values: compensation.CauseWords(), Check: oneOf(compensation.CauseWords()), Match: matchExceptionCause},
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
		m.Where, m.Args = "x.kind IN (?) AND "+m.Where, []any{bun.List(exception.Kinds), bun.List(states)} // leading columns of the index
	}
	return m, nil
}

// deadOf is the compensation that an exception is about.
const deadOf = "SELECT 1 FROM compensations AS cp WHERE cp.id = CASE WHEN x.kind = '" + exception.CompensationDead + "' THEN CAST(x.subject AS BIGINT) END"

// matchExceptionSupplier matches the supplier that an exception names. What is about a
// compensation or a notification names none: that of the compensation, or of the order.
func matchExceptionSupplier(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
	m, err := coded("suppliers", "x.supplier_id")(ctx, in, code)
	switch in.Query.Get("kind") {
	case exception.CompensationDead:
		m.Where = "EXISTS (" + deadOf + " AND cp.supplier_id = ?)"
	case exception.NotifyExhausted:
		m.Where = "EXISTS (SELECT 1 FROM orders AS o WHERE o.id = x.order_id AND o.supplier_id = ?)"
	}
	return m, err
}

// matchExceptionCause matches exceptions about compensations that are dead for a cause.
func matchExceptionCause(_ context.Context, _ list.Lookup, cause string) (list.Match, error) {
	return list.Match{Where: "EXISTS (" + deadOf + " AND cp.cause = ?)", Args: []any{cause}}, nil
}

// Exceptions reads one page of exceptions.
func (b *Reader) Exceptions(ctx context.Context, q list.Query, s list.Slice) (list.Page[exception.Item], error) {
	page, err := list.Read(ctx, b.db, q, s, func(i *exception.Item) int64 { return i.ID })
	for i := range page.Rows {
		MaskException(&page.Rows[i])
	}
	return page, err
}

// Lanes returns the kinds of exceptions that wait for a person, with their counts, money and
// oldest.
func (b *Reader) Lanes(ctx context.Context) ([]Todo, error) { return b.todoExceptions(ctx) }
