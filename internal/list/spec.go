// Package list reads lists: by page, counted, summed, as ids, or row by row. A list is declared
// once, as a Spec, from which every query is built; every query is bounded, by an index or by a
// number of rows.
package list

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Spec declares one list.
type Spec struct {
	Name         string   // in URLs and cursors: "orders"
	Sources      []Source // tables with its rows; they share one series of keys
	Fields       []Field  // in display order
	NoTimeFilter bool     // the time of a row does not matter, and no filter has one
	// ScanRows is how many rows of each source one query scans if no index covers the filter; 0
	// = 50,000.
	ScanRows int
	// SumRows is of how many rows, the newest, Sums adds up the money; 0 = 20,000.
	SumRows int
	// Of is the field by which every query is filtered: the list is of one thing's rows. "" = none.
	Of string
	// CauseField is the field that filters by a source's Cause.
	CauseField string
}

// Source is a table with rows of a list.
type Source struct {
	Table, Alias string
	Columns      string // of a row; "" = those of the row's model
	Joins        string // joined for Columns; conditions cannot use them
	Key          string // column that orders the rows; newer rows have greater keys
	// Time is the column with a row's creation time (Unix µs), if the key is not from db.NewID.
	Time  string
	Money Money // of one row; zero = none
	// Cause is an SQL expression for why a row failed, as Spec.CauseField filters by it; its value
	// is "" for one that did not. "" = rows do not fail.
	Cause string
	// MerchantColumn is an SQL expression for the id of the merchant that a row belongs to,
	// or NoMerchant. A source without one cannot be read.
	MerchantColumn string
}

// NoMerchant is the merchant column of rows that belong to no merchant. Only the Scope of all
// merchants sees them.
const NoMerchant = "0"

// Money holds SQL expressions for a row's amount in minor units and its currency.
type Money struct{ Minor, Currency string }

// Field is something a list can be filtered by.
type Field struct {
	Name   string // name in the URL
	Column string // column of every source, compared with the value; "" = use Match
	// Indexed means that an index on Column covers the filter.
	Indexed bool
	// Values are all that the field takes; fixed suggestions beside those that Suggest reads, or if
	// it has a Check of its own.
	Values  []string
	Suggest func(context.Context, bun.IDB) ([]Choice, error)
	// Check returns what is wrong with a value; "" = nothing. nil = the value is one of Values, or,
	// without them, any text. No value reaches Match or a query unchecked.
	Check func(value string) string
	// Match returns the matching rows, if one comparison is not enough.
	Match func(ctx context.Context, in Lookup, value string) (Match, error)
	// Hidden fields are set by links and appear in no form.
	Hidden bool
}

// problem returns what is wrong with a value; "" = nothing. Whatever the field, a database can
// hold the text.
func (f *Field) problem(value string) string {
	if value == "" || len(value) > MaxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return "use 1 to 500 bytes of text, without control characters"
	}
	switch {
	case f.Check != nil:
		return f.Check(value)
	case len(f.Values) > 0 && f.Suggest == nil && !slices.Contains(f.Values, value): // a typing error must not look like an empty list
		return "use one of " + strings.Join(f.Values, ", ")
	}
	return ""
}

// Choice is one suggested value of a field.
type Choice struct {
	Value string `bun:"value"`
	Name  string `bun:"name"` // displayed beside the value; "" = none
}

// Lookup is the input of a field's Match.
type Lookup struct {
	DB     *db.DB
	Read   bun.IDB // reads what the list itself is read from
	Source *Source
	Query  Query
}

// Match describes the rows of one source that match a term.
type Match struct {
	Where string // "" = all
	Args  []any
	None  bool // no row of the source matches
	// Indexed means that an index covers the condition; otherwise the newest rows are scanned,
	// up to the limit.
	Indexed bool
	// AnyAge means that rows of any age match, whatever the slice's time range.
	AnyAge bool
	// Candidates returns a query, covered by indexes, for a set of rows that contains all matches. If
	// the set has at most 20,000 rows, matches are searched there instead of among the newest
	// rows.
	Candidates func(context.Context, bun.IDB) (string, error)
}

// Scope is the set of merchants whose rows may be seen. The zero Scope sees nothing.
type Scope struct {
	all       bool
	merchants []int64
}

// All returns the Scope that sees every row.
func All() Scope { return Scope{all: true} }

// In restricts a query that is no list's to the Scope; column has the id of a row's merchant.
func (s Scope) In(q *bun.SelectQuery, column string) *bun.SelectQuery {
	if s.all {
		return q
	}
	return q.Where(column+" IN (?)", bun.List(append([]int64{-1}, s.merchants...))) // no merchant has the id -1
}

// Of returns the Scope of the given merchants.
func Of(merchants ...int64) Scope { return Scope{merchants: merchants} }

// field returns the field with this name; nil = none.
func (s *Spec) field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// HasMoney reports whether the rows have amounts, which Sums adds up.
func (s *Spec) HasMoney() bool { return s.Sources[0].Money != (Money{}) }

// addsUp reports whether Totals has something to say about the rows of a source.
func (s *Source) addsUp() bool { return s.Money != (Money{}) || s.Cause != "" }

func (s *Spec) sumRows() int {
	if s.SumRows > 0 {
		return s.SumRows
	}
	return sumRows
}

func (s *Spec) scanRows() int {
	if s.ScanRows > 0 {
		return s.ScanRows
	}
	return scanRows
}

// Suggestions returns what a form suggests for the fields, by name.
func (s *Spec) Suggestions(ctx context.Context, q bun.IDB) (map[string][]Choice, error) {
	all := map[string][]Choice{}
	for _, f := range s.Fields {
		for _, v := range f.Values {
			all[f.Name] = append(all[f.Name], Choice{Value: v})
		}
		if f.Suggest == nil {
			continue
		}
		read, err := f.Suggest(ctx, q)
		if err != nil {
			return nil, err
		}
		all[f.Name] = append(all[f.Name], read...)
	}
	return all, nil
}
