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

// maxFollowed is the number of latest orders whose state a summary reads.
const maxFollowed = 200

// tally counts what happened and prints it. It is safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	out       io.Writer
	orders    int
	taken     map[ending]int // callbacks accepted, by ending
	refused   int            // genuine callbacks that were not accepted
	forgeries int            // forgeries refused
	accepted  int            // forgeries accepted: must stay 0
	troubles  int
	found     int        // payments without a callback, found by queries
	shown     bool       // the URL of an order with a story has been printed
	latest    []followed // a ring buffer once it is full
	next      int
}

type followed struct {
	shop *shop
	no   string
}

func newTally(out io.Writer) *tally { return &tally{out: out, taken: map[ending]int{}} }

func (t *tally) log(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(format, args...)
}

// print is log with the lock held. A closed output is ignored.
func (t *tally) print(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// show prints the URL of the first order that is worth a look: a refunded one, whose page has a bit of everything.
func (t *tally) show(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shown {
		t.shown = true
		t.print("an order with a story: %s", url)
	}
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

// callback counts one callback by its answer and prints its line; status 0 = none was sent.
func (t *tally) callback(e ending, status int, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case status == 0 || status/100 == 2:
		t.taken[e]++
	default:
		t.refused++
	}
	t.print("%s", line)
}

func (t *tally) forgery(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status/100 == 2 {
		t.accepted++
		return
	}
	t.forgeries++
}

func (t *tally) foundOne(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found++
	t.print("%s", line)
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

// summary reads the state of the latest orders and prints all counts.
func (s *stage) summary(ctx context.Context, when string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), summaryTime)
	defer cancel()
	s.tally.mu.Lock()
	latest := slices.Clone(s.tally.latest)
	s.tally.mu.Unlock()
	status, notified := map[string]int{}, map[string]int{}
	for _, f := range latest {
		o, err := s.to.get(ctx, f.shop, f.no)
		if err != nil {
			o = order{Status: "unknown", NotifyStatus: "unknown"}
		}
		status[o.Status]++
		notified[o.NotifyStatus]++
	}
	s.tally.summary(when, len(latest), status, notified, s.shops)
	s.tally.log("  console: %s/", s.o.Console)
}

func (t *tally) summary(when string, latest int, status, notified map[string]int, shops []*shop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print("── %s: %d orders, callbacks accepted: %d, repeats %d, not accepted %d", when, t.orders, t.sum(), t.taken[repeated]*2/3,
		t.refused)
	t.print("  exceptions caused: amount_mismatch %d, late_payment %d, unknown_order %d, dispute_opened %d; never called back %d; callbacks lost %d, found by a query %d",
		t.taken[wrongAmount], t.taken[late], t.taken[unknown], t.taken[disputed], t.taken[never], t.taken[lost], t.found)
	t.print("  forgeries refused %d, accepted %d; trouble %d", t.forgeries, t.accepted, t.troubles)
	t.print("  latest %d orders: %s; merchants notified: %s", latest, counts(status), counts(notified))
	for _, m := range shops {
		t.print("  %-12s requests %4d, delivered %4d, signatures wrong %d", m.code, m.server.Count(), m.taken.Load(), m.unsigned.Load())
	}
}

// sum returns the number of callbacks that were sent and accepted.
func (t *tally) sum() int {
	n := 0
	for e, count := range t.taken {
		if e != never && e != lost {
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
