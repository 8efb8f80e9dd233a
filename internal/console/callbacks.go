package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/callback"

	"github.com/uptrace/bun"
)

// CallbackFilter asks for callbacks. Empty fields do not filter.
type CallbackFilter struct {
	OrderNo  string // also the reference of one that found no order; then the span's window does not count
	Supplier string // code
	Outcome  string
	Taken    bool // leaves out those that were refused
	Slice
}

// callbackTables are the two tables with one kind of ids, so that one cursor
// serves both: what was authentic, and what was refused at the door.
const (
	takenTable   = "callbacks"
	refusedTable = "refused_callbacks"
)

var callbackColumns = map[string]string{
	takenTable: "c.id, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier," +
		" c.received_at, c.remote_addr, c.outcome, c.steps, c.order_no",
	refusedTable: "c.id, c.supplier, c.received_at, c.remote_addr, c.outcome, c.steps, '' AS order_no",
}

// tables: a refused callback belongs to no order, so an order's callbacks are
// never among them.
func (f CallbackFilter) tables() []string {
	switch {
	case callback.IsRefusal(f.Outcome) && (f.OrderNo != "" || f.Taken):
		return nil
	case callback.IsRefusal(f.Outcome):
		return []string{refusedTable}
	case f.Taken || f.OrderNo != "" || f.Outcome != "":
		return []string{takenTable}
	}
	return []string{takenTable, refusedTable}
}

// Callbacks is one page of callbacks.
func (b *Book) Callbacks(ctx context.Context, f CallbackFilter) (Page[callback.Row], error) {
	scans := f.OrderNo == "" && (f.Supplier != "" || f.Outcome != "")
	if f.OrderNo != "" {
		f.From, f.To = 0, 0
	}
	supplier := int64(0)
	if f.Supplier != "" {
		var err error
		if supplier, err = b.SupplierID(ctx, f.Supplier); err != nil {
			return Page[callback.Row]{}, err
		}
	}
	match := map[string]conditions{takenTable: {}, refusedTable: {}}
	for _, table := range f.tables() {
		c := match[table]
		c.equal("c.outcome", f.Outcome)
		c.equal("c.order_no", f.OrderNo)
		if f.Supplier != "" && table == takenTable {
			c.add("c.supplier_id = ?", supplier)
		} else if table == refusedTable {
			c.equal("c.supplier", f.Supplier)
		}
		match[table] = c
	}
	w, err := f.ids(), error(nil)
	if scans {
		if w, err = b.scan(ctx, f.Slice, w, f.tables()...); err != nil {
			return Page[callback.Row]{}, err
		}
	}
	var rows []callback.Row
	for _, table := range f.tables() {
		var more []callback.Row
		q := match[table].apply(b.db.Read.NewSelect().TableExpr("? AS c", bun.Ident(table)).ColumnExpr(callbackColumns[table]))
		if err := f.within(q, "c", w).Scan(ctx, &more); err != nil {
			return Page[callback.Row]{}, fmt.Errorf("read %s: %w", table, err)
		}
		rows = append(rows, more...)
	}
	slices.SortFunc(rows, func(x, y callback.Row) int {
		if f.At.Newer {
			x, y = y, x
		}
		return cmp.Compare(y.ID, x.ID)
	})
	page := cut(f.Slice, w, rows, func(r callback.Row) int64 { return r.ID })
	for i := range page.Rows {
		if err := json.Unmarshal(page.Rows[i].RawSteps, &page.Rows[i].Steps); err != nil {
			return page, fmt.Errorf("steps of callback %d: %w", page.Rows[i].ID, err)
		}
		MaskCallback(&page.Rows[i])
	}
	for _, table := range f.tables() {
		part := page
		if err := counted(ctx, b, &part, f.Slice, w, scans, table, "c", match[table].apply); err != nil {
			return page, err
		}
		if f.At.ID == 0 && (page.Older.ID == 0 || page.Reached > 0) {
			page.Count, page.More = part.Count, part.More // the page has rows of both tables
			break
		}
		page.Count, page.More = min(page.Count+part.Count, countRows), page.More || part.More || page.Count+part.Count > countRows
	}
	return page, nil
}
