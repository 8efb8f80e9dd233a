package console

import (
	"context"
	"slices"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/compensation"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// CompensationList declares the list of compensations. A million may wait while a few are dead,
// so a filter searches within its state if that has few.
var CompensationList = list.New(list.Spec{
	Name: "compensations", ScanRows: 25_000,
	Sources: []list.Source{{
		Table: "compensations", Alias: "cp", Key: "id",
		Money: list.Money{Minor: "cp.amount", Currency: "cp.currency"}, MerchantColumn: "cp.merchant_id",
	}},
	Fields: []list.Field{
		{Name: "no", Column: "order_no", Indexed: true},
		{Name: "state", Match: matchCompensations, Values: compensation.Moves.Words()},
		{Name: "kind", Column: "kind", Values: compensation.Names},
		{Name: "cause", Column: "cause", Values: compensation.CauseWords()},
		{Name: "supplier", Match: alone("suppliers", "cp.supplier_id"), Suggest: codes("suppliers", "name")},
		{Name: "merchant", Match: alone("merchants", "cp.merchant_id"), Suggest: codes("merchants", "name")},
		amountField,
	},
})

func matchCompensations(_ context.Context, in list.Lookup, state string) (list.Match, error) {
	of, ok := compensation.Moves.Parse(state)
	if !ok {
		return list.Match{None: true}, nil
	}
	// A literal, so that the planner knows how few rows have this state.
	where := compensation.Moves.In("cp.state", of)
	return list.Match{Where: where, Indexed: len(in.Query.Terms) == 1, Candidates: func(context.Context, bun.IDB) (string, error) {
		return "SELECT * FROM compensations AS cp WHERE " + where, nil
	}}, nil
}

// alone is coded, with an index that is usable if nothing else is filtered.
func alone(table, column string) func(context.Context, list.Lookup, string) (list.Match, error) {
	match := coded(table, column)
	return func(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
		m, err := match(ctx, in, code)
		m.Indexed = len(in.Query.Terms) == 1
		return m, err
	}
}

// Compensation is an item with the codes of its supplier and merchant.
type Compensation struct {
	compensation.Item
	Supplier, Merchant string // "" = none
}

// Subject returns the subject's name: "order:123".
func (c *Compensation) Subject() string {
	return c.SubjectKind + ":" + strconv.FormatInt(c.SubjectID, 10)
}

// Compensations reads one page of compensations.
func (b *Reader) Compensations(ctx context.Context, q list.Query, s list.Slice) (list.Page[Compensation], error) {
	found, err := list.Read(ctx, b.db, q, s, func(x *compensation.Item) int64 { return x.ID })
	page := list.Page[Compensation]{
		Older: found.Older, Newer: found.Newer, Newest: found.Newest, Reached: found.Reached, Count: found.Count, More: found.More,
		Totals: found.Totals,
	}
	if err != nil || len(found.Rows) == 0 {
		return page, err
	}
	page.Rows, err = b.withCodes(ctx, found.Rows)
	return page, err
}

func (b *Reader) withCodes(ctx context.Context, items []compensation.Item) ([]Compensation, error) {
	var suppliers, merchants []int64
	for _, x := range items {
		suppliers, merchants = append(suppliers, x.SupplierID), append(merchants, x.MerchantID)
	}
	ofMerchant, err := b.MerchantCodes(ctx, merchants)
	if err != nil {
		return nil, err
	}
	ofSupplier, err := b.SupplierCodes(ctx, suppliers)
	if err != nil {
		return nil, err
	}
	all := make([]Compensation, len(items))
	for i, x := range items {
		x.LastError = MaskText(x.LastError)
		all[i] = Compensation{Item: x, Supplier: ofSupplier[x.SupplierID], Merchant: ofMerchant[x.MerchantID]}
	}
	return all, nil
}

// SupplierCodes returns the codes of suppliers, including those that are currently unusable.
func (b *Reader) SupplierCodes(ctx context.Context, ids []int64) (map[int64]string, error) {
	codes := map[int64]string{}
	var rows []Named
	if err := b.db.Read.NewRaw("SELECT id, code FROM suppliers WHERE id IN (?)", bun.List(ids)).Scan(ctx, &rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		codes[r.ID] = r.Code
	}
	return codes, nil
}

// addDead reads the dead compensation of an order.
func (b *Reader) addDead(ctx context.Context, s *Story) (err error) {
	s.Dead, err = compensation.DeadOf(ctx, b.db.Read, s.Order.OrderNo)
	return err
}

// CompensationDetail is one compensation with its tries, oldest first. Personal data in its
// payload and texts is masked.
type CompensationDetail struct {
	Compensation
	Tries []compensation.Try
}

// CompensationDetail reads a compensation. Errors: act.ErrNotFound.
func (b *Reader) CompensationDetail(ctx context.Context, id int64) (*CompensationDetail, error) {
	x, tries, err := compensation.Find(ctx, b.db.Read, id)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, act.ErrNotFound
	}
	all, err := b.withCodes(ctx, []compensation.Item{*x})
	if err != nil {
		return nil, err
	}
	d := &CompensationDetail{Compensation: all[0], Tries: tries}
	d.Payload = maskerOf(d.OrderNo, strconv.FormatInt(d.SubjectID, 10)).Body(d.Payload)
	for i := range d.Tries {
		d.Tries[i].Error = MaskText(d.Tries[i].Error)
	}
	return d, nil
}

// CompensationGroup is a group with the code of its supplier.
type CompensationGroup struct {
	compensation.Group
	Supplier string // "" = none
}

// CompensationGroups groups the compensations of a state; cut = not all were read.
func (b *Reader) CompensationGroups(ctx context.Context, state compensation.State) (all []CompensationGroup, cut bool, err error) {
	groups, cut, err := compensation.Groups(ctx, b.db.Read, state)
	if err != nil {
		return nil, false, err
	}
	ids := make([]int64, len(groups))
	for i, g := range groups {
		ids[i] = g.SupplierID
	}
	codes, err := b.SupplierCodes(ctx, ids)
	for _, g := range groups {
		all = append(all, CompensationGroup{Group: g, Supplier: codes[g.SupplierID]})
	}
	slices.SortStableFunc(all, func(a, b CompensationGroup) int { return int(b.Count - a.Count) })
	return all, cut, err
}
