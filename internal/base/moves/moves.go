// Package moves is the table of a status: which statuses there are, what each of
// them means, and what it may become. A noun declares its table beside itself, and
// every write of the status column is a compare-and-set that the table allows.
package moves

import (
	"fmt"
	"slices"
	"strings"
)

// Row is one status.
type Row[S ~string] struct {
	Status  S
	Meaning string // a sentence for docs/states.md
	// Initial: rows are created in it.
	Initial bool
	// Open: it has not come to its end yet.
	Open bool
	// NeedsPerson: nothing goes on until a person acts.
	NeedsPerson bool
	// To is what it may become; itself, where a write may leave it as it is.
	To []S
}

// Table is all statuses of one noun, in the order of its life.
type Table[S ~string] struct {
	Noun   string // the title in docs/states.md, as "Order"
	Column string // where it is stored, as "orders.status"
	About  string // who writes it, for docs/states.md; markdown
	Rows   []Row[S]
}

// Of is the row of a status; the zero row where the table does not have it.
func (t Table[S]) Of(s S) Row[S] {
	for i := range t.Rows {
		if t.Rows[i].Status == s {
			return t.Rows[i]
		}
	}
	return Row[S]{}
}

// Can says whether one status may become the other.
func (t Table[S]) Can(from, to S) bool { return slices.Contains(t.Of(from).To, to) }

// From is every status that may become the given one; of among alone where that is
// given. It is the guard of a compare-and-set, and panics where it would be empty:
// such a write is a mistake of ours.
func (t Table[S]) From(to S, among ...S) []S {
	all := t.where(func(r Row[S]) bool {
		return slices.Contains(r.To, to) && (len(among) == 0 || slices.Contains(among, r.Status))
	})
	if len(all) == 0 {
		panic(fmt.Sprintf("%s: nothing of %q may become %q", t.Column, among, to))
	}
	return all
}

// Statuses is all of them, in the order of the noun's life.
func (t Table[S]) Statuses() []S { return t.where(func(Row[S]) bool { return true }) }

// Words is Statuses as texts, for filters.
func (t Table[S]) Words() (all []string) {
	for _, r := range t.Rows {
		all = append(all, string(r.Status))
	}
	return all
}

// Initial is every status that rows are created in.
func (t Table[S]) Initial() []S { return t.where(func(r Row[S]) bool { return r.Initial }) }

// Open is every status that has not come to its end.
func (t Table[S]) Open() []S { return t.where(func(r Row[S]) bool { return r.Open }) }

// NeedsPerson is every status in which nothing goes on until a person acts.
func (t Table[S]) NeedsPerson() []S { return t.where(func(r Row[S]) bool { return r.NeedsPerson }) }

// Final is every status that never becomes another one.
func (t Table[S]) Final() []S {
	return t.where(func(r Row[S]) bool { return !slices.ContainsFunc(r.To, func(to S) bool { return to != r.Status }) })
}

func (t Table[S]) where(holds func(Row[S]) bool) (all []S) {
	for _, r := range t.Rows {
		if holds(r) {
			all = append(all, r.Status)
		}
	}
	return all
}

// Allows is the table as a condition of SQL on an old and a new value, for writes
// that move rows of several statuses at once.
func (t Table[S]) Allows(from, to string) string {
	var all []string
	for _, r := range t.Rows {
		if len(r.To) > 0 {
			all = append(all, In(from, r.Status)+" AND "+In(to, r.To...))
		}
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

// In is the condition of SQL that a column has one of some words of ours, written
// out: partial indexes are found by nothing else.
func In[S ~string](column string, of ...S) string {
	quoted := make([]string, len(of))
	for i, s := range of {
		quoted[i] = "'" + string(s) + "'"
	}
	return column + " IN (" + strings.Join(quoted, ", ") + ")"
}
