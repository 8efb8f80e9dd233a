package payout

import (
	"os"
	"testing"

	"pgregory.net/rapid"

	"backstop/internal/ledger/fact"
)

// steps is how many events the model tries; make soak runs the full number.
func steps() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 1_000_000
	}
	return 50_000
}

// Whatever happens in whatever order, a payout stays in a cell of its table, its entries are those
// of its steps, each booked once, and no answer that is unknown moves money. rapid prints the seed
// of a failure.
func TestThePureMachineNeverLosesMoney(t *testing.T) {
	t.Parallel()
	events := make([]Event, len(Table))
	for i, m := range Table {
		events[i] = m.Event
	}
	done, seen := 0, map[string]bool{cellOf(Created, Steps{Debit: Init, Credit: Init}): true}
	for done < steps() {
		rapid.Check(t, func(t *rapid.T) {
			status, s := Created, Steps{Debit: Init, Credit: Init}
			booked := map[fact.Name]int{}
			for range 40 {
				done++
				from := events
				if rapid.IntRange(0, 3).Draw(t, "illegal") > 0 { // mostly what may happen: else few stories come far
					if legal := legalFrom(status, s); len(legal) > 0 {
						from = legal
					}
				}
				e := rapid.SampledFrom(from).Draw(t, "event")
				next, steps, move, err := Next(status, s, e)
				if err != nil {
					if next != status || steps != s {
						t.Fatalf("%s is illegal and changes %s %+v to %s %+v", e, status, s, next, steps)
					}
					continue
				}
				if (e == Doubted || e == GaveUp || e == Sent) && len(move.Facts) > 0 {
					t.Fatalf("%s moves money: %v", e, move.Facts)
				}
				for _, f := range move.Facts {
					if booked[f]++; booked[f] > 1 {
						t.Fatalf("%s is booked twice", f)
					}
				}
				status, s = next, steps
				cell := cellOf(status, s)
				if cell == "" {
					t.Fatalf("after %s: %s %+v is in no cell", e, status, s)
				}
				seen[cell] = true
				d, r, c, x, l := booked[fact.PayoutDebit], booked[fact.PayoutReversal], booked[fact.PayoutCredit],
					booked[fact.PayoutReturned], booked[fact.PayoutLate]
				if !Moves.Of(status).Open && d-r != c-x {
					t.Fatalf("%s: debit %d, reversal %d, credit %d, returned %d", status, d, r, c, x)
				}
				if r > 0 && c-x > 0 || l > r || c > d || r > d {
					t.Fatalf("%s: debit %d, reversal %d, credit %d, returned %d, late %d", status, d, r, c, x, l)
				}
			}
		})
	}
	for _, c := range Cells {
		if !seen[c.No] {
			t.Errorf("no story reached %s", c.No)
		}
	}
}

func legalFrom(status Status, s Steps) (legal []Event) {
	for _, m := range Table {
		if _, _, _, err := Next(status, s, m.Event); err == nil {
			legal = append(legal, m.Event)
		}
	}
	return legal
}
