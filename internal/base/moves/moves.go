// Package moves is the state machine of a status column: the statuses, their meanings, and
// the legal moves between them. Each noun declares its own table, and every write of the
// column is a compare-and-set that the table allows.
package moves

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Row is one status.
type Row[S ~string] struct {
	Status  S
	Meaning string // a sentence for docs/states.md
	// Initial: rows are created in it.
	Initial bool
	// Open: more moves are expected.
	Open bool
	// NeedsPerson: it stays until an operator acts.
	NeedsPerson bool
	// To are the legal next statuses; it includes Status if a write may leave it unchanged.
	To []S
}

// Table has all statuses of one noun, in the order of its life.
type Table[S ~string] struct {
	Noun   string // the title in docs/states.md, as "Order"
	Column string // where it is stored, as "orders.status"
	About  string // who writes it, for docs/states.md; markdown
	Rows   []Row[S]
}

// Of returns the row of a status; the zero Row if the table does not have it.
func (t Table[S]) Of(s S) Row[S] {
	for _, r := range t.Rows {
		if r.Status == s {
			return r
		}
	}
	return Row[S]{}
}

// Can reports whether one status may become the other.
func (t Table[S]) Can(from, to S) bool { return slices.Contains(t.Of(from).To, to) }

// From returns every status that may become the given one, limited to among if that is given.
// It is the guard of a compare-and-set, and panics if it is empty: such a write is a bug.
func (t Table[S]) From(to S, among ...S) []S {
	all := t.where(func(r Row[S]) bool {
		return slices.Contains(r.To, to) && (len(among) == 0 || slices.Contains(among, r.Status))
	})
	if len(all) == 0 {
		panic(fmt.Sprintf("%s: none of %q may become %q", t.Column, among, to))
	}
	return all
}

// Statuses returns all statuses, in the order of the noun's life.
func (t Table[S]) Statuses() []S { return t.where(func(Row[S]) bool { return true }) }

// Words is Statuses as strings, for filters.
func (t Table[S]) Words() (all []string) {
	for _, r := range t.Rows {
		all = append(all, string(r.Status))
	}
	return all
}

// Initial returns every status that rows are created in.
func (t Table[S]) Initial() []S { return t.where(func(r Row[S]) bool { return r.Initial }) }

// Open returns every status from which more moves are expected.
func (t Table[S]) Open() []S { return t.where(func(r Row[S]) bool { return r.Open }) }

// NeedsPerson returns every status that stays until an operator acts.
func (t Table[S]) NeedsPerson() []S { return t.where(func(r Row[S]) bool { return r.NeedsPerson }) }

// Final returns every status that never changes to another one.
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

// Allows returns the table as an SQL condition on an old and a new value, for writes that
// move rows of several statuses at once.
func (t Table[S]) Allows(from, to string) string {
	var all []string
	for _, r := range t.Rows {
		if len(r.To) > 0 {
			all = append(all, t.In(from, r.Status)+" AND "+t.In(to, r.To...))
		}
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

// Parse returns the status that a text names; false = the table has none of that name.
func (t Table[S]) Parse(text string) (S, bool) {
	r := t.Of(S(text))
	return r.Status, r.Status != ""
}

// In returns the SQL condition that a column has one of the statuses. They are literals, because
// partial indexes are not used with parameters: so it panics on one that the table does not have,
// such as a text that was not parsed.
func (t Table[S]) In(column string, of ...S) string {
	for _, s := range of {
		if _, ok := t.Parse(string(s)); !ok {
			panic(fmt.Sprintf("%s has no status %q", t.Column, s))
		}
	}
	return literals(column, of)
}

// word is what Words accepts: names of constants of ours.
var word = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Words is Table.In for constants that are no statuses, as kinds and causes are. It panics on
// anything that is not one word of small letters.
func Words[S ~string](column string, of ...S) string {
	for _, s := range of {
		if !word.MatchString(string(s)) {
			panic(fmt.Sprintf("%s cannot be compared with %q", column, s))
		}
	}
	return literals(column, of)
}

func literals[S ~string](column string, of []S) string {
	quoted := make([]string, len(of))
	for i, s := range of {
		quoted[i] = "'" + string(s) + "'"
	}
	return column + " IN (" + strings.Join(quoted, ", ") + ")"
}
