package breaker

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

var policy = Policy{Failures: 3, Open: 300 * time.Second, RatePercent: 50, Window: time.Minute, MinSamples: 10}

const second = int64(1_000_000)

// run folds a string of results (s succeeded, f failed, u unclear), each one second after the
// last, under the row's current generation, and returns the changes.
func run(r *Row, now *int64, results string) (changes []*Change) {
	for _, c := range results {
		*now += second
		res := map[rune]Result{'s': Succeeded, 'f': Failed, 'u': Unclear}[c]
		if ch := r.fold(*now, r.Generation, res, policy); ch != nil {
			changes = append(changes, ch)
		}
	}
	return changes
}

func TestOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		results string
		state   State
		cause   string
	}{
		{"ff", Closed, ""},
		{"fff", Open, InARow},
		{"ffsff", Closed, ""},             // a success begins anew
		{"ffuf", Open, InARow},            // unclear results neither count nor reset
		{"uuuuu", Closed, ""},             // and never opens
		{"sfsffsffsf", Open, FailureRate}, // 6 of 10
		{"ssssssssff", Closed, ""},
	} {
		r, now := &Row{State: Closed}, int64(1000*second)
		run(r, &now, c.results)
		if r.State != c.state || r.Cause != c.cause {
			t.Errorf("%s: %s by %q, want %s by %q", c.results, r.State, r.Cause, c.state, c.cause)
		}
	}
}

func TestRateLooksAtItsWindowOnly(t *testing.T) {
	t.Parallel()
	r, now := &Row{State: Closed}, int64(1000*second)
	run(r, &now, "ffsffsff") // 6 of 8: not enough results yet
	now += 61 * second
	run(r, &now, "sf")
	if r.State != Closed || r.WindowFailed != 1 || r.WindowOK != 1 {
		t.Errorf("%+v", r)
	}
}

func TestProbeDecides(t *testing.T) {
	t.Parallel()
	r, now := &Row{State: Closed}, int64(1000*second)
	run(r, &now, "fff")
	if r.OpenUntil != now+300*second {
		t.Errorf("open until %d, want 300 s after %d", r.OpenUntil, now)
	}
	opened := r.Generation
	if c := r.fold(now, opened-1, Succeeded, policy); c != nil || r.State != Open {
		t.Error("a result from before the breaker opened closed it")
	}
	for _, c := range []struct {
		result string
		state  State
		cause  string
	}{{"f", Open, ProbeFailed}, {"u", Open, ProbeFailed}, {"s", Closed, ProbeTaken}} {
		r.move(now, HalfOpen, ProbeDue, policy)
		run(r, &now, c.result)
		if r.State != c.state || r.Cause != c.cause {
			t.Errorf("probe %s: %s by %s", c.result, r.State, r.Cause)
		}
	}
	if r.Failures != 0 || r.Generation != opened+6 {
		t.Errorf("%+v", r)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	const me, other = 7, 8
	now := int64(1000 * second)
	for name, c := range map[string]struct {
		row  *Row
		want Gate
	}{
		"healthy":             {nil, Gate{Flow: true}},
		"failed a little":     {&Row{State: Closed, Failures: 2}, Gate{Flow: true}},
		"open":                {&Row{State: Open, OpenUntil: now + 1}, Gate{}},
		"open long enough":    {&Row{State: Open, OpenUntil: now}, Gate{Due: true}},
		"open by an operator": {&Row{State: Open, ByHand: true}, Gate{}},
		"my probe":            {&Row{State: HalfOpen, ProbeOwner: me, ProbeUntil: now + 1}, Gate{Probe: true}},
		"another's probe":     {&Row{State: HalfOpen, ProbeOwner: other, ProbeUntil: now + 1}, Gate{}},
		"a dead node's":       {&Row{State: HalfOpen, ProbeOwner: other, ProbeUntil: now}, Gate{Due: true}},
		"just closed":         {&Row{State: Closed, Cause: ProbeTaken, ChangedAt: now}, Gate{Flow: true, PerSecond: 10}},
		"closed 5 s ago":      {&Row{State: Closed, Cause: ProbeTaken, ChangedAt: now - 5*second}, Gate{Flow: true, PerSecond: 40}},
		"closed a while ago":  {&Row{State: Closed, Cause: ProbeTaken, ChangedAt: now - 20*second}, Gate{Flow: true}},
	} {
		if got := c.row.Gate(now, me); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The life cycle of a breaker by the clock: open to the microsecond, one probe, and a release
// that doubles every two seconds until it is unlimited.
func TestBreakerByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const me = 7
		now := func() int64 { return time.Now().UnixMicro() }
		r := &Row{State: Closed}
		for range policy.Failures {
			r.fold(now(), r.Generation, Failed, policy)
		}
		waittest.Pass(policy.Open - time.Microsecond)
		if g := r.Gate(now(), me); g.Due || g.Flow || g.Probe {
			t.Errorf("a microsecond before its time: %+v", g)
		}
		waittest.Pass(time.Microsecond)
		if g := r.Gate(now(), me); !g.Due {
			t.Errorf("at its time: %+v", g)
		}
		r.move(now(), HalfOpen, ProbeDue, policy)
		r.ProbeOwner, r.ProbeUntil = me, now()+15*second
		waittest.Pass(15 * time.Second) // the probing node has died
		if g := r.Gate(now(), me); g.Probe || !g.Due {
			t.Errorf("after the probe's lease: %+v", g)
		}
		r.fold(now(), r.Generation, Succeeded, policy)
		for at := range 30 {
			want := math.Pow(2, float64(at/2)) * releaseFirst
			if at >= 20 {
				want = 0
			}
			if g := r.Gate(now(), me); !g.Flow || g.PerSecond != want {
				t.Errorf("%d s after it closed: %+v, want %.0f/s", at, g, want)
			}
			waittest.Pass(time.Second)
		}
	})
}
