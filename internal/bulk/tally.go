package bulk

import (
	"cmp"
	"slices"

	"backstop/internal/act"
	"backstop/internal/report"
)

// Tally is how many subjects, and how much money by currency, had which end: an
// act.Prospect, or a word for what came of them.
type Tally map[string][]report.Sum

// ends are how rows that were to be acted on end: as a RowState, or, of those that were left
// alone, as the act.Prospect that they had by then.
var ends = []string{
	string(RowDone), string(act.Waits), string(RowFailed), string(act.Final), string(act.Unknown), string(act.Blocked),
}

// Count is how many subjects had one of some ends.
func (t Tally) Count(of ...string) (n int64) {
	for _, s := range t.Sums(of...) {
		n += s.Orders
	}
	return n
}

// Sums are the subjects that had one of some ends, and their money, by currency.
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

// acting are the prospects of what is acted on.
var acting = []string{string(act.Will), string(act.Waits), string(act.WillQuery)}

// Acts are the subjects that are acted on, and their money, by currency.
func (t Tally) Acts() []report.Sum { return t.Sums(acting...) }

// Planned is how many subjects are acted on.
func (t Tally) Planned() int64 { return t.Count(acting...) }

// Ran are the rows that were done, and their money, by currency.
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

// clone is a copy that can be added to.
func (t Tally) clone() Tally {
	c := Tally{}
	for end, sums := range t {
		c[end] = slices.Clone(sums)
	}
	return c
}

// driftParts: a batch stops where an amount differs by more than one part in so many.
const driftParts = 100

// drifted reports whether the money of a currency is too far from what was shown: by is the
// difference.
func drifted(shown, by []report.Sum) bool {
	planned := map[string]int64{}
	for _, s := range shown {
		planned[s.Currency] = s.Minor
	}
	return slices.ContainsFunc(by, func(s report.Sum) bool { return max(s.Minor, -s.Minor) > planned[s.Currency]/driftParts })
}

// moved notes what a row that was to be acted on adds to the drift: all of its money where
// it is over by now, else how much it has changed. What something else works on, or goes on
// by itself meanwhile, is no drift.
func (t Tally) moved(r *Row, now *act.Subject) {
	shown := report.Sum{Currency: r.Currency, Minor: -r.Amount}
	if r.Currency != "" {
		t.plus("", shown)
	}
	if now != nil && now.Prospect != act.Final && now.Currency != "" {
		t.plus("", report.Sum{Currency: now.Currency, Minor: now.Amount})
	}
}
