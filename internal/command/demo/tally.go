package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxFollowed bounds the orders whose state a summary asks for: the latest ones.
const maxFollowed = 200

// tally counts what happened and prints it. It is safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	out       io.Writer
	orders    int
	told      map[ending]int // callbacks taken, by ending
	refused   int            // callbacks that should have been taken and were not
	forgeries int            // refused, as they should be
	believed  int            // forgeries answered as taken: must stay 0
	troubles  int
	latest    []followed // a ring once it is full
	next      int
}

type followed struct {
	shop *shop
	no   string
}

func newTally(out io.Writer) *tally { return &tally{out: out, told: map[ending]int{}} }

func (t *tally) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(format, args...)
}

// print is say for those who hold the lock. A terminal that is gone is no reason
// to stop.
func (t *tally) print(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func (t *tally) made(m *shop, o order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.orders++
	f := followed{m, o.OrderNo}
	if len(t.latest) < maxFollowed {
		t.latest = append(t.latest, f)
		return
	}
	t.latest[t.next] = f
	t.next = (t.next + 1) % maxFollowed
}

// callback notes one callback and its answer, and prints the line about it; status 0
// is none sent.
func (t *tally) callback(e ending, status int, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case status == 0 || status/100 == 2:
		t.told[e]++
	default:
		t.refused++
	}
	t.print("%s", line)
}

func (t *tally) forgery(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status/100 == 2 {
		t.believed++
		return
	}
	t.forgeries++
}

func (t *tally) trouble(e ending, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.troubles++
	t.print("%-12s did not go as planned: %v", e, err)
}

func answered(status int) string {
	if status == 0 {
		return "no callback"
	}
	return fmt.Sprintf("answered %d", status)
}

// summary asks for the state of the latest orders and prints all counts.
func (s *stage) summary(ctx context.Context, when string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	s.tally.mu.Lock()
	latest := slices.Clone(s.tally.latest)
	s.tally.mu.Unlock()
	status, told := map[string]int{}, map[string]int{}
	for _, f := range latest {
		o, err := s.to.look(ctx, f.shop, f.no)
		if err != nil {
			o = order{Status: "unknown", NotifyStatus: "unknown"}
		}
		status[o.Status]++
		told[o.NotifyStatus]++
	}
	s.tally.summary(when, len(latest), status, told, s.shops)
	s.tally.say("  console: %s/", s.o.Console)
}

func (t *tally) summary(when string, latest int, status, told map[string]int, shops []*shop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print("── %s: %d orders, callbacks taken: %d, repeats %d, not taken %d", when, t.orders, t.sum(), t.told[repeated]*2/3, t.refused)
	t.print("  exceptions caused: amount_mismatch %d, late_payment %d, unknown_order %d, dispute_opened %d; never called back %d",
		t.told[wrongAmount], t.told[late], t.told[unknown], t.told[disputed], t.told[never])
	t.print("  forgeries refused %d, believed %d; trouble %d", t.forgeries, t.believed, t.troubles)
	t.print("  latest %d orders: %s; merchants told: %s", latest, counts(status), counts(told))
	for _, m := range shops {
		t.print("  %-12s asked %4d times, took %4d, signatures wrong %d", m.code, m.server.Count(), m.taken.Load(), m.unsigned.Load())
	}
}

// sum is every callback that was sent and taken.
func (t *tally) sum() int {
	n := 0
	for e, count := range t.told {
		if e != never {
			n += count
		}
	}
	return n
}

func counts(m map[string]int) string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}
