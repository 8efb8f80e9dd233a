package ui

import (
	"maps"
	"math/big"
	"slices"

	"backstop/internal/base/money"
	"backstop/internal/base/sheet"
	"backstop/internal/base/text"
)

// File is a table that is exported: its columns, and the totals of the rows that were written.
type File struct {
	p       *Page
	columns []Heading
	sums    map[string][]*big.Int // by currency and column; nil = no money in the column
	rows    map[string]int64
}

// NewFile returns an empty table.
func NewFile(p *Page, columns []Heading) *File {
	return &File{p: p, columns: columns, sums: map[string][]*big.Int{}, rows: map[string]int64{}}
}

// Heads are the headings of the columns.
func (f *File) Heads() []sheet.Head {
	row := make([]sheet.Head, len(f.columns))
	for i, h := range f.columns {
		row[i] = h.file(f.p)
	}
	return row
}

// Add adds the cells of a row to the totals, and returns them as they are written. The row counts
// for the first currency that one of its columns has.
func (f *File) Add(cells []Cell, into []string) {
	counted := ""
	for i, h := range f.columns {
		into[i] = h.InFile(f.p, cells[i])
		currency := cells[i].Currency
		if h.Kind != MoneyKind || currency == "" {
			continue
		}
		if counted == "" {
			counted = currency
			f.rows[currency]++
		}
		of := f.sums[currency]
		if of == nil {
			of = make([]*big.Int, len(f.columns))
			f.sums[currency] = of
		}
		if of[i] == nil {
			of[i] = new(big.Int)
		}
		of[i].Add(of[i], big.NewInt(cells[i].Minor))
	}
}

// Totals returns one row for each currency; the first column that has no money says which.
func (f *File) Totals() [][]string {
	var all [][]string
	for _, currency := range slices.Sorted(maps.Keys(f.sums)) {
		row, named := make([]string, len(f.columns)), false
		for i, sum := range f.sums[currency] {
			switch {
			case sum != nil && sum.IsInt64(): // beyond that, no such money exists
				row[i] = money.Format(sum.Int64(), currency)
			case sum == nil && !named:
				row[i], named = f.p.T(tExportTotal, currency, Count(f.rows[currency])), true
			}
		}
		all = append(all, row)
	}
	return all
}

// ExportTitle is the first row of an exported list: its filter as in the address, when,
// by whom, and with which version.
func ExportTitle(p *Page, filter, by string) string {
	if filter == "" {
		filter = p.T(text.None)
	}
	return p.T(tExportTitle, p.Version, filter, p.Full(p.Now.UnixMicro()), by)
}

// Texts of exports.
var (
	tExportTotal = text.Text{ZH: "合计 %s（%s 行）", EN: "Total %s (%s rows)"}
	tExportTitle = text.Text{ZH: "Backstop %s · 筛选条件：%s · %s 由 %s 导出", EN: "Backstop %s · filter: %s · exported %s by %s"}
)
