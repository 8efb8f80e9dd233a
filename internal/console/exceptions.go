package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/audit"
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

// ExceptionList declares the list of exceptions. They may wait for a person for any length of
// time: an index finds what is open, by kind, by merchant or of all, and what an operator has,
// however old it is. Other filters search what is open if that is little, else the newest.
var ExceptionList = list.New(list.Spec{
	Name: "exceptions", ScanRows: 25_000, SumRows: 5000, // those of one merchant are on a page of the table each
	Sources: []list.Source{{
		Table: "exceptions", Alias: "x", Key: "id",
		Money: list.Money{Minor: "x.amount", Currency: "x.currency"}, MerchantColumn: "x.merchant_id",
	}},
	Fields: []list.Field{
		{Name: "no", Column: "order_no", Indexed: true}, // also the reference of a callback without an order
		{Name: "kind", Match: matchKind, Values: slices.Sorted(slices.Values(exception.Kinds))},
		{Name: "state", Match: matchState, Values: exceptionStates},
		{Name: "assignee", Match: matchAssignee, Suggest: operatorNames},
		{Name: "supplier", Match: matchExceptionSupplier, Suggest: codes("suppliers", "name")},
		{Name: "merchant", Match: matchMerchant, Suggest: codes("merchants", "name")},
		amountField,
		{
			Name: "cause", Hidden: true, Values: compensation.CauseWords(),
			Match: matchExceptionCause,
		},
		atRisk("exceptions", func(r report.Rows) list.Match { return list.Match{Where: r.Where, Args: r.Args, Candidates: allOpen} }),
	},
})

// exceptionStates are the values of the field "state".
var exceptionStates = append([]string{NeedsPerson, Unsettled}, exception.Moves.Words()...)

// openExceptions is the condition of the partial indexes of what is open.
var openExceptions = exception.Moves.In("x.state", exception.Moves.Open()...)

// among has a filter look among the exceptions that meet a condition, where they are few.
func among(condition string) func(context.Context, bun.IDB) (string, error) {
	return func(context.Context, bun.IDB) (string, error) {
		return "SELECT * FROM exceptions AS x WHERE " + condition, nil
	}
}

// allOpen is among what is open.
var allOpen = among(openExceptions)

// only reports whether a query has no other terms than those.
func only(q list.Query, names ...string) bool {
	return !slices.ContainsFunc(q.Terms, func(t list.Term) bool { return !slices.Contains(names, t.Name) })
}

func matchKind(_ context.Context, in list.Lookup, kind string) (list.Match, error) {
	return list.Match{Where: "x.kind = ?", Args: []any{kind}, Indexed: only(in.Query, "kind", "state")}, nil
}

// matchState leads to what is open, of a kind or of all, to a state of what is over, and to a state
// of a kind.
func matchState(_ context.Context, in list.Lookup, state string) (list.Match, error) {
	m := list.Match{Where: openExceptions, Indexed: only(in.Query, "kind", "state"), Candidates: allOpen}
	switch state {
	case NeedsPerson:
		m.Where += " AND " + exception.Moves.In("x.state", exception.Moves.NeedsPerson()...)
		return m, nil
	case Unsettled:
		return m, nil
	}
	of, ok := exception.Moves.Parse(state)
	if !ok {
		return list.Match{None: true}, nil
	}
	if one := exception.Moves.In("x.state", of); of.Open() {
		m.Where, m.Indexed = openExceptions+" AND "+one, m.Indexed && len(in.Query.Terms) == 2
	} else {
		m.Where, m.Candidates = one, among(one) // the condition of a partial index
	}
	return m, nil
}

func matchAssignee(_ context.Context, _ list.Lookup, name string) (list.Match, error) {
	return list.Match{Where: "x.assignee <> '' AND x.assignee = ?", Args: []any{name}, Indexed: true}, nil
}

// matchMerchant leads to what a merchant has, or has open.
func matchMerchant(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
	m, err := coded("merchants", "x.merchant_id")(ctx, in, code)
	state := in.Query.Get("state")
	m.Indexed = len(in.Query.Terms) == 1 || len(in.Query.Terms) == 2 && (state == NeedsPerson || state == Unsettled)
	return m, err
}

// deadOf is the compensation that an exception is about.
const deadOf = "SELECT 1 FROM compensations AS cp WHERE cp.id = CASE WHEN x.kind = '" + exception.CompensationDead +
	"' THEN CAST(x.subject AS BIGINT) END"

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

// Exception is one exception with the acts on it, newest first.
type Exception struct {
	exception.Item
	Supplier string // code
	Merchant string // code
	Acts     []audit.Row
	Kept     []Callback // past their retention; their texts are cut
	// Message is the callback that first reported it; nil = it is past its retention, or a
	// query reported it.
	Message   *CallbackDetail
	Approvals []Approval // newest first
	Answer    *Call      // the supplier's newest answer about its order; nil = never queried
	Askable   bool       // the supplier of its order can be queried
}

// Mask hides personal data copied from messages.
func (x *Exception) Mask() {
	MaskException(&x.Item)
	for i := range x.Kept {
		x.Kept[i].mask(maskerOf(x.OrderNo))
	}
	if x.Message != nil {
		x.Message.Mask()
	}
}

// ExceptionObject is the object name of exceptions in the audit.
const ExceptionObject = "exception"

// ExceptionID formats an exception's id as in pages and the audit.
func ExceptionID(id int64) string { return strconv.FormatInt(id, 10) }

// Exception reads one exception. Errors: act.ErrNotFound.
func (b *Reader) Exception(ctx context.Context, id int64) (*Exception, error) {
	var rows []exception.Item
	if err := b.db.Read.NewSelect().Model(&rows).Where("x.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an exception: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	x := &Exception{Item: rows[0]}
	err := b.db.Read.NewRaw(
		"SELECT COALESCE((SELECT code FROM suppliers WHERE id = ?), ''), COALESCE((SELECT code FROM merchants WHERE id = ?), '')",
		x.SupplierID, x.MerchantID).Scan(ctx, &x.Supplier, &x.Merchant)
	if err != nil {
		return nil, fmt.Errorf("name an exception's supplier and merchant: %w", err)
	}
	err = b.db.Read.NewRaw(
		"SELECT callback_id AS id, ? AS supplier, received_at, trade_no, remote_addr, method, query, headers, body, size FROM exception_callbacks"+
			" WHERE exception_id = ? ORDER BY callback_id LIMIT ?", x.Supplier, x.ID, exception.KeptCallbacks).Scan(ctx, &x.Kept)
	if err != nil {
		return nil, fmt.Errorf("read an exception's callbacks: %w", err)
	}
	if x.Acts, err = audit.List(ctx, b.db.Read, audit.Query{
		Object: ExceptionObject, ObjectID: ExceptionID(id),
		Limit: detailRows,
	}); err != nil {
		return nil, err
	}
	return x, b.decideAbout(ctx, x)
}

// decideAbout adds what is needed to decide about an exception.
func (b *Reader) decideAbout(ctx context.Context, x *Exception) (err error) {
	if x.CallbackID != 0 {
		if x.Message, err = b.CallbackDetail(ctx, x.CallbackID); err != nil && !errors.Is(err, act.ErrNotFound) {
			return err
		}
	}
	if x.Approvals, err = b.ApprovalsOf(ctx, ExceptionObject, ExceptionID(x.ID)); err != nil || x.OrderID == 0 {
		return err
	}
	if to, ok := b.settings.Current().Suppliers.ByID(x.SupplierID); ok {
		x.Askable = to.Can().Querier != nil
	}
	x.Answer, err = b.LastAnswer(ctx, x.OrderNo)
	return err
}
