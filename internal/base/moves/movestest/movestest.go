// Package movestest checks tables of moves.
package movestest

import (
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/moves"
)

// Check compares a table pair by pair with legal, the same table written a second time from
// the trade's rules. Rows are from, columns are to, both in the order of the table; x is a
// legal move.
//
// It also checks that each status can be reached and that unknown ones have no moves.
func Check[S ~string](t *testing.T, table moves.Table[S], legal string) {
	t.Helper()
	all := table.Statuses()
	lines := strings.Split(strings.TrimSpace(legal), "\n")
	var names []S
	for _, name := range strings.Fields(lines[0]) {
		names = append(names, S(name))
	}
	if !slices.Equal(names, all) || len(lines)-1 != len(all) {
		t.Fatalf("the test lists the statuses %q, the table %q", names, all)
	}
	for i, line := range lines[1:] {
		cells := strings.Fields(line)
		if len(cells) != len(all)+1 || S(cells[0]) != all[i] {
			t.Fatalf("the line %q is not the line of %s", line, all[i])
		}
		for j, cell := range cells[1:] {
			if got := table.Can(all[i], all[j]); got != (cell == "x") {
				t.Errorf("%s to %s: the table has %t", all[i], all[j], got)
			}
		}
	}
	for _, unknown := range []S{"", "PAID", "no_such"} {
		for _, s := range append([]S{unknown}, all...) {
			if table.Can(s, unknown) || table.Can(unknown, s) {
				t.Errorf("a move joins %q and %q", s, unknown)
			}
		}
	}
	for _, s := range Unreachable(table) {
		t.Errorf("nothing ever becomes %s", s)
	}
	for _, s := range table.Open() {
		if slices.Contains(table.Final(), s) {
			t.Errorf("%s is open, but no status follows it", s)
		}
	}
}

// Unreachable returns every status that no row reaches by its creation or by moves, and every
// target of a move that is not in the table.
func Unreachable[S ~string](table moves.Table[S]) (all []S) {
	seen := table.Initial()
	for i := 0; i < len(seen); i++ {
		for _, to := range table.Of(seen[i]).To {
			if !slices.Contains(seen, to) {
				seen = append(seen, to)
			}
		}
	}
	for _, s := range table.Statuses() {
		if !slices.Contains(seen, s) {
			all = append(all, s)
		}
	}
	for _, s := range seen {
		if !slices.Contains(table.Statuses(), s) {
			all = append(all, s)
		}
	}
	return all
}
