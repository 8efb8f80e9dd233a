package order

import (
	"testing"

	"backstop/internal/base/moves/movestest"
)

// legal is the table a second time, written from the rules of the trade and not from Moves, so
// that a slip in one of the two is found. Rows are from, columns to, both in the order of
// Statuses.
const legal = `
          pending paying closing paid failed closed
pending   .       x      x       x    x      x
paying    .       .      x       x    x      x
closing   .       x      .       x    x      x
paid      .       .      .       .    .      .
failed    .       .      .       x    .      .
closed    .       .      .       x    .      .
`

func TestEveryPairOfStatusesIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, legal)
}

// What is not open needs no attention any more, and money never leaves paid.
func TestOnlyOpenStatusesMayClose(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses {
		if Moves.Can(s, Closed) != s.Open() {
			t.Errorf("%s: open %t, but may close %t", s, s.Open(), Moves.Can(s, Closed))
		}
	}
	if len(Moves.Of(Paid).To) != 0 {
		t.Errorf("paid may become %v", Moves.Of(Paid).To)
	}
}

// A notification's id is made of the order and the type of the event: no status that
// merchants are notified of may come twice.
func TestNoStatusThatIsNotifiedOfComesTwice(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{Paid, Failed, Closed} {
		seen, next := map[Status]bool{}, Moves.Of(s).To
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			if !seen[at] {
				seen[at] = true
				next = append(next, Moves.Of(at).To...)
			}
		}
		if seen[s] {
			t.Errorf("an order may become %s again: count its earlier events in the ids of its notifications", s)
		}
	}
}
