package bulk

import (
	"cmp"
	"slices"

	"backstop/internal/act"
	"backstop/internal/report"
)

// Tally is how many subjects, and how much money by currency, had which end: an
// act.Prospect, or a Kind's own result.
type Tally map[string][]report.Sum

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

// Acts are the subjects that are acted on, and their money, by currency.
func (t Tally) Acts() []report.Sum { return t.Sums(string(act.Will), string(act.Waits)) }

// Planned is how many subjects are acted on.
func (t Tally) Planned() int64 { return t.Count(string(act.Will), string(act.Waits)) }

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

// driftParts: a plan stops where an amount differs by more than one part in so many.
const driftParts = 100

// drifted reports whether the money of a currency is not what was planned.
func drifted(planned, is []report.Sum) bool {
	shown, now := map[string]int64{}, map[string]int64{} // by currency
	for _, s := range planned {
		shown[s.Currency] = s.Minor
		now[s.Currency] = 0
	}
	for _, s := range is {
		now[s.Currency] = s.Minor
	}
	for currency, n := range now {
		if max(shown[currency]-n, n-shown[currency]) > shown[currency]/driftParts {
			return true
		}
	}
	return false
}
