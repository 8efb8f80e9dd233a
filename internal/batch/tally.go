package batch

import (
	"cmp"
	"slices"

	"backstop/internal/act"
	"backstop/internal/report"
)

// Tally counts subjects and their money by currency, grouped by end: an act.Effect or a word
// for the result.
type Tally map[string][]report.Sum

// ends are how rows that were to be acted on end: a RowState or, if they were left alone, the
// act.Effect that they had by then.
var ends = []string{
	string(RowDone), string(act.Waits), string(RowFailed), string(act.Final), string(act.Unknown), string(act.Blocked),
}

// Count returns how many subjects had any of the given ends.
func (t Tally) Count(of ...string) (n int64) {
	for _, s := range t.Sums(of...) {
		n += s.Orders
	}
	return n
}

// Sums returns the subjects that had any of the given ends, and their money, by currency.
func (t Tally) Sums(of ...string) []report.Sum {
	all := Tally{}
	for _, o := range of {
		for _, s := range t[o] {
			all.plus("", s)
		}
	}
	slices.SortFunc(all[""], func(a, b report.Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	return all[""]
}

// acting are the effects that lead to an act.
var acting = []string{string(act.Will), string(act.Waits), string(act.WillQuery)}

// Acts returns the subjects to act on, and their money, by currency.
func (t Tally) Acts() []report.Sum { return t.Sums(acting...) }

// Ran returns the rows that were done, and their money, by currency.
func (t Tally) Ran() []report.Sum { return t.Sums(string(RowDone), string(act.Waits)) }

func (t Tally) add(end string, s act.Subject) {
	t.plus(end, report.Sum{Currency: s.Currency, Orders: 1, Minor: s.Amount})
}

func (t Tally) plus(end string, more report.Sum) {
	for i := range t[end] {
		if s := &t[end][i]; s.Currency == more.Currency {
			s.Orders, s.Minor = s.Orders+more.Orders, s.Minor+more.Minor
			return
		}
	}
	t[end] = append(t[end], more)
}

// clone returns a copy that can be added to.
func (t Tally) clone() Tally {
	c := Tally{}
	for end, sums := range t {
		c[end] = slices.Clone(sums)
	}
	return c
}

// driftParts: a batch stops if an amount differs by more than one part in this many.
const driftParts = 100

// drifted reports whether the money of a currency is too far from what was shown; by is the
// difference.
func drifted(shown, by []report.Sum) bool {
	planned := map[string]int64{}
	for _, s := range shown {
		planned[s.Currency] = s.Minor
	}
	return slices.ContainsFunc(by, func(s report.Sum) bool { return max(s.Minor, -s.Minor) > planned[s.Currency]/driftParts })
}

// moved adds a row's change to the drift: all its money if it is over by now, else the change
// of its amount. Rows that something else works on, or that continue on their own, do not
// count.
func (t Tally) moved(r *Row, now *act.Subject) {
	shown := report.Sum{Currency: r.Currency, Minor: -r.Amount}
	if r.Currency != "" {
		t.plus("", shown)
	}
	if now != nil && now.Effect != act.Final && now.Currency != "" {
		t.plus("", report.Sum{Currency: now.Currency, Minor: now.Amount})
	}
}
