// Package list reads lists: a page at a time, counted, totalled, as ids, or row by row.
// A list is declared once, as a Spec, from which every read of it is made; every query is
// bounded by an index or by a number of rows.
package list

import (
	"context"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Spec declares one list.
type Spec struct {
	Name    string   // in addresses and cursors: "orders"
	Sources []Source // where its rows are, with one kind of keys
	Fields  []Field  // in the order in which a form shows them
	// ScanRows is how many rows of each source one query looks at where no index
	// leads to those that match; 0 = 50,000.
	ScanRows int
}

// Source is a table that rows of a list are in.
type Source struct {
	Table, Alias string
	Columns      string // of a row; "" = the columns of the row's model
	Joins        string // of tables that Columns names; conditions cannot use them
	Key          string // column by which rows are ordered; newer rows have greater keys
	// Time is the column with the moment at which a row was made (Unix µs), where its
	// key is not from db.NewID.
	Time  string
	Money Money // of one row; zero = it has none
	// MerchantColumn is an expression for the id of the merchant that a row is about;
	// NoMerchant where it is about none. A source without one cannot be read.
	MerchantColumn string
}

// NoMerchant is the merchant column of rows that are about no merchant. They are seen
// with the Scope of all merchants.
const NoMerchant = "0"

// Money is the amount of a row: expressions for its minor units and its currency.
type Money struct{ Minor, Currency string }

// Field is something by which a list is filtered.
type Field struct {
	Word   string // its name in the address
	Column string // of every source, equal to the value; "" = see Match
	// Indexed: an index on Column leads to the rows that match.
	Indexed bool
	// Values are suggestions that are always the same, Suggest reads the others. A
	// value that is not suggested is allowed; it may match nothing.
	Values  []string
	Suggest func(context.Context, bun.IDB) ([]Choice, error)
	// Check returns what is wrong with a value; "" = nothing. nil allows any.
	Check func(value string) string
	// Match returns which rows match, where that is more than one comparison.
	Match func(ctx context.Context, in Lookup, value string) (Match, error)
	// Hidden: links set the field, no form has it.
	Hidden bool
}

// Choice is one suggestion for the value of a field.
type Choice struct {
	Value string `bun:"value"`
	Name  string `bun:"name"` // shown beside the value; "" = none
}

// Lookup is what a field's Match gets.
type Lookup struct {
	DB     *db.DB
	Source *Source
	Query  Query
}

// Match is the rows of one source that match a term.
type Match struct {
	Where string // "" = all of them
	Args  []any
	None  bool // no row of the source matches
	// Indexed: an index leads to the rows. Else the newest rows are searched, as many
	// as a query may.
	Indexed bool
	// Ageless: rows of any age match, whatever the slice's time.
	Ageless bool
	// Few returns a query for rows of the source, among them all that match, which
	// indexes lead to. Where there are no more than 20,000, what matches is found among
	// those instead of among the newest.
	Few func(context.Context, bun.IDB) (string, error)
}

// Scope is the merchants whose rows may be seen. The zero Scope sees nothing.
type Scope struct {
	all       bool
	merchants []int64
}

// All sees every row.
func All() Scope { return Scope{all: true} }

// Of sees the rows of some merchants.
func Of(merchants ...int64) Scope { return Scope{merchants: merchants} }

// field finds a field by its word; nil = there is none.
func (s *Spec) field(word string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Word == word {
			return &s.Fields[i]
		}
	}
	return nil
}

// HasMoney reports whether the list's rows have amounts, which Sums adds up.
func (s *Spec) HasMoney() bool { return s.Sources[0].Money != (Money{}) }

func (s *Spec) scanRows() int {
	if s.ScanRows > 0 {
		return s.ScanRows
	}
	return scanRows
}

// Suggestions are what a form offers for the fields, by their words.
func (s *Spec) Suggestions(ctx context.Context, q bun.IDB) (map[string][]Choice, error) {
	all := map[string][]Choice{}
	for _, f := range s.Fields {
		for _, v := range f.Values {
			all[f.Word] = append(all[f.Word], Choice{Value: v})
		}
		if f.Suggest == nil {
			continue
		}
		read, err := f.Suggest(ctx, q)
		if err != nil {
			return nil, err
		}
		all[f.Word] = append(all[f.Word], read...)
	}
	return all, nil
}
