package paymenttest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"backstop/internal/order"

	"pgregory.net/rapid"
)

// Stories runs stories of random steps, each on its own Machine, and checks the invariants
// after each step; see RunStories.
func Stories(t *testing.T, full int, open func(w *World) Machine) {
	t.Helper()
	one, summary := ofOrders(open)
	RunStories(t, full, one)
	t.Log(summary())
}

// Breaks reports whether stories with that many steps break an invariant. It is for negative
// controls: a Machine that does one thing wrong.
func Breaks(t *testing.T, full int, open func(w *World) Machine) (broken string) {
	t.Helper()
	one, summary := ofOrders(open)
	broken = FindViolation(t, full, one)
	t.Log(summary())
	return broken
}

// ofOrders returns a story of one order, and a summary of all that were run.
func ofOrders(open func(w *World) Machine) (one func(*rapid.T) int, summary func() string) {
	ends, did := map[order.Status]int{}, map[string]int{}
	one = func(t *rapid.T) int {
		w := NewWorld(30 * time.Minute)
		s := &story{t: t, w: w, m: open(w), did: did}
		n := s.run()
		ends[s.books.Order.Status]++
		return n
	}
	return one, func() string { return fmt.Sprintf("orders ended %v; steps %v", ends, did) }
}

// RunStories runs stories of random steps; one runs a story and returns how many steps it had.
// full is the total number of steps under E2E_FULL; otherwise a twentieth is run, and of that a
// quarter with -short. The seed of a story that fails is printed; -rapid.seed or RAPID_SEED sets it,
// and only that hundred is run.
func RunStories(t *testing.T, full int, one func(*rapid.T) (steps int)) {
	t.Helper()
	if testing.Short() { // beside a pass that tells all of them
		full /= 4
	}
	seeded := flag.Lookup("rapid.seed").Value.String() != "0"
	tell(t, full, one, func(check func(*rapid.T)) bool { rapid.Check(t, check); return !seeded })
}

// tell runs stories until they had enough steps or run returns false. It sets no flags of rapid,
// which all tests of a process share.
func tell(t *testing.T, full int, one func(*rapid.T) int, run func(func(*rapid.T)) bool) {
	t.Helper()
	steps := full
	if os.Getenv("E2E_FULL") != "1" {
		steps /= 20
	}
	told, broken, start := 0, false, time.Now()
	for told < steps && run(func(t *rapid.T) {
		if told >= steps && !broken { // the rest of the hundred that rapid checks; a broken story is repeated to make it short
			return
		}
		ended := false
		defer func() { broken = broken || !ended }()
		n := one(t)
		told, ended = told+n, true
	}) {
	}
	t.Logf("%d steps in %s", told, time.Since(start).Round(time.Millisecond))
}

// FindViolation runs stories as RunStories does until one panics with a Violation, and returns
// it; "" = none does.
func FindViolation(t *testing.T, full int, one func(*rapid.T) (steps int)) (broken string) {
	t.Helper()
	tell(t, full, one, func(check func(*rapid.T)) bool {
		gen := rapid.Custom(func(t *rapid.T) (found string) {
			defer func() {
				if p := recover(); p != nil {
					v, ok := p.(Violation)
					if !ok {
						panic(p)
					}
					found = string(v)
				}
			}()
			check(t)
			return ""
		})
		broken = gen.Example(int(rand.Uint32()))
		return broken == ""
	})
	return broken
}

// Violation is the panic of a story in which an invariant is broken.
type Violation string
