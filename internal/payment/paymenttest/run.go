package paymenttest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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
// full is the total number of steps under E2E_FULL; otherwise a twentieth is run. The seed is
// printed; BACKSTOP_TEST_SEED sets it.
func RunStories(t *testing.T, full int, one func(*rapid.T) (steps int)) {
	t.Helper()
	if err := tell(t, full, one, func(check func(*rapid.T)) bool { rapid.Check(t, check); return !t.Failed() }); err != nil {
		t.Fatal(err)
	}
}

func tell(t *testing.T, full int, one func(*rapid.T) int, run func(func(*rapid.T)) bool) error {
	t.Helper()
	steps := full
	if os.Getenv("E2E_FULL") != "1" {
		steps /= 20
	}
	seed := rand.Uint64() | 1
	if text := os.Getenv("BACKSTOP_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("BACKSTOP_TEST_SEED: %w", err)
		}
	}
	for name, value := range map[string]string{
		"rapid.seed": strconv.FormatUint(seed, 10), "rapid.checks": "25", "rapid.nofailfile": "true",
	} {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			return err
		}
		t.Cleanup(func() { _ = flag.Set(name, old) })
	}
	first, told, start := seed, 0, time.Now()
	for told < steps && run(func(t *rapid.T) { told += one(t) }) {
		seed++
		if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
			return err
		}
	}
	t.Logf("BACKSTOP_TEST_SEED=%d: %d steps in %s", first, told, time.Since(start).Round(time.Millisecond))
	return nil
}

// FindViolation runs stories as RunStories does until one panics with a Violation, and returns
// it; "" = none does.
func FindViolation(t *testing.T, full int, one func(*rapid.T) (steps int)) (broken string) {
	t.Helper()
	err := tell(t, full, one, func(check func(*rapid.T)) bool {
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
	if err != nil {
		t.Fatal(err)
	}
	return broken
}

// Violation is the panic of a story in which an invariant is broken.
type Violation string
