package work_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/work"

	"pgregory.net/rapid"
)

// clock is a time that the test advances, in Unix µs.
type clock int64

func (c *clock) now() int64           { return int64(*c) }
func (c *clock) pass(d time.Duration) { *c += clock(d.Microseconds()) }
func open(int64) work.Gate            { return work.Gate{Open: true, Max: 1000} }
func jobs(lane int64, ids ...int64) []work.Job {
	all := make([]work.Job, len(ids))
	for i, id := range ids {
		all[i] = work.Job{ID: id, Lane: lane}
	}
	return all
}

func upTo(n int64) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	return ids
}

// granted returns the slots of the jobs that run, if claims take no time.
func granted(s *work.Slots, now int64) (all []work.Slot) {
	for {
		grant, _, _ := s.Next(now)
		ahead := 0
		for _, x := range grant {
			if x.Ahead {
				ahead++
				s.Committed(x)
			} else {
				all = append(all, x)
			}
		}
		if ahead == 0 {
			return all
		}
	}
}

func idsOf(all []work.Slot) []int64 {
	ids := make([]int64, len(all))
	for i, x := range all {
		ids[i] = x.ID
	}
	return ids
}

func TestAJobIsHandedOutOnceHoweverOftenItIsOffered(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 50, Gate: open})
	s.Offer(c.now(), jobs(1, 1, 2, 1)...)
	s.Offer(c.now(), jobs(1, 2)...)
	got := granted(s, c.now())
	s.Offer(c.now(), jobs(1, 1, 2)...)
	got = append(got, granted(s, c.now())...)
	if ids := idsOf(got); !slices.Equal(ids, []int64{1, 2}) {
		t.Fatalf("handed out %v", ids)
	}
	for _, x := range got {
		s.Done(c.now(), x, 0, true)
		s.Done(c.now(), x, 0, true) // again does nothing
		s.Return(c.now(), x, false)
	}
	if u := s.Stats(); u.Quick != 0 || u.Jobs != 0 {
		t.Errorf("left: %+v", u)
	}
	// A returned slot does not affect the next slot of its job.
	s.Offer(c.now(), jobs(1, 1)...)
	again := granted(s, c.now())
	s.Done(c.now(), got[0], 0, true)
	s.Late(got[0])
	if u := s.Stats(); len(again) != 1 || u.Quick != 1 || s.Lane(1).Slow {
		t.Errorf("the old slot changed the new one: %+v", u)
	}
}

func TestALaneEarnsItsSlots(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 100, Gate: func(int64) work.Gate { return work.Gate{Open: true, Max: 8} }})
	s.Offer(c.now(), jobs(1, upTo(40)...)...)
	first := granted(s, c.now())
	if len(first) != 5 {
		t.Fatalf("%d at first, want 5", len(first))
	}
	for range 10 {
		s.Done(c.now(), first[0], 0, true)
		first = append(first[1:], granted(s, c.now())...)
	}
	if len(first) != 8 {
		t.Errorf("%d after ten successes, want all 8 of its gate", len(first))
	}
	s.Done(c.now(), first[0], 0, false)
	if more := granted(s, c.now()); len(more) != 0 {
		t.Errorf("%d more after a failure with 7 running", len(more))
	}
}

func TestWhereSlotsAreScarceAnUnprovenLaneGetsOne(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 8, Gate: open})
	for lane := range int64(10) {
		s.Offer(c.now(), jobs(lane+1, 100*lane+1, 100*lane+2, 100*lane+3)...)
	}
	lanes := map[int64]int{}
	for _, x := range granted(s, c.now()) {
		lanes[x.Lane]++
	}
	if len(lanes) < 4 {
		t.Errorf("eight slots went to %v", lanes)
	}
}

func TestWhatIsNotDueIsHeldUntilItsMoment(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 5, Gate: open})
	at := c.now() + 700_000
	s.Offer(c.now(), work.Job{ID: 1, Lane: 1, At: at}, work.Job{ID: 2, Lane: 1, At: at + 1})
	grant, _, wakeAt := s.Next(c.now())
	if len(grant) != 0 || wakeAt != at {
		t.Fatalf("%v, and again at %d, want %d", grant, wakeAt, at)
	}
	s.Offer(c.now(), jobs(1, 2)...) // it is due now
	if ids := idsOf(granted(s, c.now())); !slices.Equal(ids, []int64{2}) {
		t.Fatalf("handed out %v before the moment", ids)
	}
	if ids := idsOf(granted(s, at+1)); !slices.Equal(ids, []int64{1}) {
		t.Errorf("handed out %v at the moment", ids)
	}
}

func TestAClosedLaneHoldsNothing(t *testing.T) {
	t.Parallel()
	c, gate := clock(1e15), work.Gate{}
	s := work.NewSlots(work.SlotOptions{Size: 5, Gate: func(int64) work.Gate { return gate }})
	s.Offer(c.now(), jobs(1, 1, 2)...)
	s.More(c.now(), 1)
	if grant, refill, _ := s.Next(c.now()); len(grant)+len(refill) > 0 || s.Stats() != (work.Stats{}) {
		t.Errorf("a closed lane: %v, %v, %+v", grant, refill, s.Stats())
	}
	gate = work.Gate{Open: true, Max: 1, Epoch: 7}
	s.Offer(c.now(), jobs(1, 1, 2, 3)...)
	x := granted(s, c.now())
	if len(x) != 1 || x[0].Epoch != 7 || x[0].Probe {
		t.Fatalf("%+v", x)
	}
	gate = work.Gate{}
	s.Done(c.now(), x[0], 0, false)
	if grant := granted(s, c.now()); len(grant) != 0 || s.Stats().Jobs != 0 {
		t.Errorf("closed meanwhile: %v, %+v", grant, s.Stats())
	}
}

func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	c, gate := clock(1e15), work.Gate{Probe: true, Max: 10}
	s := work.NewSlots(work.SlotOptions{Size: 5, Gate: func(int64) work.Gate { return gate }})
	s.Offer(c.now(), jobs(1, 1, 2, 3, 4)...)
	x := granted(s, c.now())
	if len(x) != 1 || !x[0].Probe || len(granted(s, c.now())) != 0 {
		t.Fatalf("%+v", x)
	}
	s.Return(c.now(), x[0], false)
	if x = granted(s, c.now()); len(x) != 1 || x[0].ID != 2 {
		t.Fatalf("after one that was not tried: %+v", x)
	}
	gate.Only = 4
	s.Done(c.now(), x[0], 0, false)
	if x = granted(s, c.now()); len(x) != 1 || x[0].ID != 4 || s.Stats().Jobs != 1 {
		t.Fatalf("the wanted one alone: %+v, %+v", x, s.Stats())
	}
}

// A probe is the only one until its result is known; a hanging probe does not keep the next
// epoch from probing.
func TestAProbeIsAskedForOncePerEpoch(t *testing.T) {
	t.Parallel()
	c, gate := clock(1e15), work.Gate{Lease: true, Max: 10, Epoch: 4}
	s := work.NewSlots(work.SlotOptions{Size: 5, Gate: func(int64) work.Gate { return gate }})
	s.Offer(c.now(), jobs(1, upTo(5)...)...)
	one := func(want int64) work.Slot {
		t.Helper()
		x := granted(s, c.now())
		if len(x) != 1 || x[0].ID != want || !x[0].Probe || len(granted(s, c.now())) != 0 {
			t.Fatalf("%+v, want %d as the probe", x, want)
		}
		return x[0]
	}
	none := func(when string) {
		t.Helper()
		s.More(c.now(), 1)
		if x := granted(s, c.now()); len(x) != 0 {
			t.Fatalf("%s: %+v", when, x)
		}
	}
	first := one(1)
	gate = work.Gate{Probe: true, Max: 10, Epoch: 5} // the probe is leased before this node knows
	none("before it began")
	first.Epoch = 5
	s.Began(first)
	none("while it runs")
	gate = work.Gate{Lease: true, Max: 10, Epoch: 5} // its time is over, and it hangs
	s.More(c.now(), 1)
	second := one(2)
	s.Done(c.now(), first, 0, false)
	none("the second one is asked for")
	s.Return(c.now(), second, false)
	one(3)
}

func TestARateIsSharedByAllNodes(t *testing.T) {
	t.Parallel()
	c, nodes := clock(1e15), 4
	s := work.NewSlots(work.SlotOptions{Size: 500, Nodes: func() int { return nodes }, Gate: func(int64) work.Gate {
		return work.Gate{Open: true, Max: 1000, PerSecond: 40}
	}})
	run := func(d time.Duration) (n int) {
		for end := c.now() + d.Microseconds(); c.now() < end; {
			grant, _, wakeAt := s.Next(c.now())
			for _, x := range grant {
				n++
				s.Done(c.now(), x, 0, true)
			}
			if len(grant) == 0 && (wakeAt <= c.now() || wakeAt > c.now()+time.Second.Microseconds()) {
				t.Fatalf("to be woken at %d, it is %d", wakeAt, c.now())
			}
			c.pass(time.Millisecond)
		}
		return n
	}
	s.Offer(c.now(), jobs(1, upTo(200)...)...)
	if n := run(10 * time.Second); n < 105 || n > 112 { // ten at once, then ten a second
		t.Errorf("%d of a quarter of 40 a second in ten seconds", n)
	}
	nodes = 1
	if n := run(time.Second); n < 36 || n > 44 {
		t.Errorf("%d of 40 a second in one, alone", n)
	}
}

func TestALateJobMakesItsLaneSlowWhileItRuns(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 10, Gate: open})
	s.Offer(c.now(), jobs(1, upTo(5)...)...)
	all := granted(s, c.now())
	for _, x := range all {
		s.Late(x)
	}
	if u := s.Stats(); u.Quick != 0 || u.Slow != 5 || !slices.Equal(s.SlowLanes(), []int64{1}) {
		t.Fatalf("%+v, slow %v", u, s.SlowLanes())
	}
	for _, x := range all[:3] {
		s.Done(c.now(), x, time.Millisecond, true)
	}
	if len(s.SlowLanes()) != 0 {
		t.Error("three quick ones do not make it quick again")
	}
	s.Done(c.now(), all[3], work.SlowAfter, true)
	if !s.Lane(1).Slow {
		t.Error("a long attempt does not make it slow")
	}
}

func TestAnIdleLaneIsForgotten(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 10, Gate: open})
	s.Offer(c.now(), jobs(1, 1)...)
	s.Done(c.now(), granted(s, c.now())[0], 0, true)
	granted(s, c.now())
	s.Age(c.now() + time.Minute.Microseconds())
	if s.Stats().Lanes != 1 {
		t.Error("forgotten within the minute")
	}
	if s.Age(c.now() + time.Minute.Microseconds() + 1); s.Stats() != (work.Stats{}) {
		t.Errorf("left: %+v", s.Stats())
	}
}

func TestALaneThatRanOutIsReadAgainOnce(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 10, Gate: open})
	s.More(c.now(), 1)
	s.More(c.now(), 1)
	for i, full := range []bool{true, false} {
		_, refill, _ := s.Next(c.now())
		if _, again, _ := s.Next(c.now()); !slices.Equal(refill, []int64{1}) || len(again) != 0 {
			t.Fatalf("to be read: %v, and besides %v", refill, again)
		}
		s.Refilled(c.now(), 1, jobs(1, int64(i)+1), full)
		for _, x := range granted(s, c.now()) {
			s.Done(c.now(), x, 0, true)
		}
	}
	if _, refill, _ := s.Next(c.now()); len(refill) != 0 {
		t.Errorf("to be read: %v", refill)
	}
}

func TestOnlyAFreeLaneReserves(t *testing.T) {
	t.Parallel()
	c, gate := clock(1e15), work.Gate{Open: true, Max: 2}
	s := work.NewSlots(work.SlotOptions{Size: 10, Gate: func(int64) work.Gate { return gate }})
	var got []work.Slot
	for id := range int64(4) {
		if x, ok := s.Reserve(c.now(), id+1, 1); ok {
			got = append(got, x)
		}
	}
	if len(got) != 2 {
		t.Fatalf("%d reserved, the lane may have two", len(got))
	}
	if len(granted(s, c.now())) != 0 {
		t.Error("handed out before the commit")
	}
	s.Committed(got[0])
	if x := granted(s, c.now()); len(x) != 1 || !x[0].Claimed || x[0].ID != got[0].ID {
		t.Errorf("after the commit: %+v", x)
	}
	s.Return(c.now(), got[1], false) // it was rolled back
	if _, ok := s.Reserve(c.now(), 9, 1); !ok {
		t.Error("what was rolled back keeps its slot")
	}
	for name, g := range map[string]work.Gate{
		"closed": {}, "probing": {Probe: true}, "rated": {Open: true, Max: 9, PerSecond: 1000},
		"just let go": {Open: true, Max: 9, NodeRate: 10},
	} {
		gate = g
		if _, ok := s.Reserve(c.now(), 10, 2); ok {
			t.Errorf("a lane that is %s reserves", name)
		}
	}
	gate = work.Gate{Open: true, Max: 1}
	s.Offer(c.now(), jobs(3, 31, 32)...)
	granted(s, c.now())
	if _, ok := s.Reserve(c.now(), 33, 3); ok {
		t.Error("one that has a line is passed")
	}
}

// model checks the invariants of Slots.
type model struct {
	t       *rapid.T
	c       clock
	s       *work.Slots
	size    int
	gates   map[int64]work.Gate
	running map[int64]work.Slot // by job
	pledged map[int64]work.Slot // to be claimed ahead
	ready   int                 // claimed, not begun
	reading []int64
	next    int64
}

func (m *model) perLane(lane int64) (n int) {
	for _, x := range m.running {
		if x.Lane == lane {
			n++
		}
	}
	return n
}

// step takes the granted slots and checks them.
func (m *model) step() {
	before := map[int64]int{}
	for lane := range m.gates {
		before[lane] = m.perLane(lane)
	}
	grant, refill, _ := m.s.Next(m.c.now())
	for _, x := range grant {
		g := m.gates[x.Lane]
		if _, twice := m.running[x.ID]; twice {
			m.t.Fatalf("job %d was handed out twice", x.ID)
		}
		if x.Ahead {
			if !g.Open {
				m.t.Fatalf("%+v is to be claimed ahead under %+v", x, g)
			}
			m.pledged[x.ID] = x
			continue
		}
		if x.Claimed || x.Closed {
			m.ready--
		}
		if x.Closed {
			if g.Open {
				m.t.Fatalf("%+v is to be released under %+v", x, g)
			}
			m.s.Return(m.c.now(), x, true)
			continue
		}
		if before[x.Lane]++; before[x.Lane] > max(g.Max, 1) {
			m.t.Fatalf("lane %d has %d slots of %d", x.Lane, before[x.Lane], g.Max)
		} else if !g.Open && !g.Probe && !g.Lease || g.Only != 0 && x.Probe && x.ID != g.Only {
			m.t.Fatalf("%+v handed out under %+v", x, g)
		}
		m.running[x.ID] = x
	}
	m.reading = append(m.reading, refill...)
	probes := map[int64]int{}
	for _, x := range m.running {
		if x.Probe {
			if probes[x.Lane]++; probes[x.Lane] > 1 {
				m.t.Fatalf("two probes of lane %d", x.Lane)
			}
		}
	}
	u := m.s.Stats()
	if u.Quick+u.Slow != len(m.running) {
		m.t.Fatalf("%d slots counted, %d in use", u.Quick+u.Slow, len(m.running))
	}
	if len(m.running) > m.size || u.Quick > max(1, m.size-m.size/10) {
		m.t.Fatalf("%d slots of %d, %d of them quick", len(m.running), m.size, u.Quick)
	}
}

func some(t *rapid.T, of map[int64]work.Slot) (work.Slot, bool) {
	if len(of) == 0 {
		return work.Slot{}, false
	}
	ids := make([]int64, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return of[rapid.SampledFrom(ids).Draw(t, "slot")], true
}

// Whatever happens in whatever order, no slot is lost, none is granted twice, and neither the
// node nor a lane ever exceeds its limit.
func TestSlotsNeverLeakAndAreNeverExceeded(t *testing.T) {
	t.Parallel()
	if err := flag.Set("rapid.steps", "200"); err != nil { // fewer seldom fill the node
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, c: 1e15, size: rapid.IntRange(1, 15).Draw(t, "size"), gates: map[int64]work.Gate{},
			running: map[int64]work.Slot{}, pledged: map[int64]work.Slot{},
		}
		m.s = work.NewSlots(work.SlotOptions{
			Size: m.size, Gate: func(lane int64) work.Gate { return m.gates[lane] },
			Nodes: func() int { return 2 },
		})
		lane := rapid.Int64Range(1, 5)
		for id := range int64(5) {
			m.gates[id+1] = work.Gate{Open: true, Max: 6}
		}
		done := func(t *rapid.T, x work.Slot) {
			delete(m.running, x.ID)
			took := time.Duration(rapid.IntRange(0, 4000).Draw(t, "took")) * time.Millisecond
			m.s.Done(m.c.now(), x, took, rapid.Bool().Draw(t, "ok"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				at := m.c.now() + int64(rapid.IntRange(-1000, 3_000_000).Draw(t, "at"))
				m.s.Offer(m.c.now(), work.Job{ID: rapid.Int64Range(1, 60).Draw(t, "id"), Lane: lane.Draw(t, "lane"), At: at})
			},
			"reserve": func(t *rapid.T) {
				m.next++
				if x, ok := m.s.Reserve(m.c.now(), 1000+m.next, lane.Draw(t, "lane")); ok {
					m.pledged[x.ID] = x
				}
			},
			"end a transaction": func(t *rapid.T) {
				if x, ok := some(t, m.pledged); ok {
					delete(m.pledged, x.ID)
					if rapid.Bool().Draw(t, "committed") {
						m.ready++
						m.s.Committed(x)
					} else {
						m.s.Return(m.c.now(), x, false)
					}
				}
			},
			"done": func(t *rapid.T) {
				if x, ok := some(t, m.running); ok {
					done(t, x)
				}
			},
			"return": func(t *rapid.T) {
				if x, ok := some(t, m.running); ok {
					delete(m.running, x.ID)
					m.s.Return(m.c.now(), x, rapid.Bool().Draw(t, "again"))
				}
			},
			"late": func(t *rapid.T) {
				if x, ok := some(t, m.running); ok {
					m.s.Late(x)
				}
			},
			"gate": func(t *rapid.T) {
				g := work.Gate{
					Open: rapid.Bool().Draw(t, "open"), Probe: rapid.Bool().Draw(t, "probe"),
					Max: rapid.IntRange(0, 9).Draw(t, "max"),
				}
				if rapid.IntRange(0, 3).Draw(t, "rated") == 0 {
					g.PerSecond = 5
				}
				m.gates[lane.Draw(t, "lane")] = g
			},
			"more":   func(t *rapid.T) { m.s.More(m.c.now(), lane.Draw(t, "lane")) },
			"forget": func(t *rapid.T) { m.s.Forget(lane.Draw(t, "lane")) },
			"read": func(t *rapid.T) {
				if len(m.reading) > 0 {
					m.s.Refilled(m.c.now(), m.reading[0], jobs(m.reading[0], rapid.Int64Range(1, 60).Draw(t, "id")),
						rapid.Bool().Draw(t, "full"))
					m.reading = m.reading[1:]
				}
			},
			"time": func(t *rapid.T) {
				m.c.pass(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
				m.s.Age(m.c.now())
			},
			"": func(*rapid.T) { m.step() },
		})
		m.drain()
	})
}

// drain ends all running and claimed jobs: nothing may be left.
func (m *model) drain() {
	for lane := range m.gates {
		m.gates[lane] = work.Gate{Open: true, Max: 9}
	}
	for _, x := range m.pledged {
		m.s.Return(m.c.now(), x, false)
	}
	clear(m.pledged)
	for range 200 {
		m.c.pass(50 * time.Millisecond)
		for _, lane := range m.reading {
			m.s.Refilled(m.c.now(), lane, nil, false)
		}
		m.reading = nil
		m.s.Age(m.c.now())
		m.step()
		for id, x := range m.pledged {
			delete(m.pledged, id)
			m.ready++
			m.s.Committed(x)
		}
		for id, x := range m.running {
			delete(m.running, id)
			m.s.Done(m.c.now(), x, 0, true)
		}
	}
	m.s.Age(m.c.now() + time.Hour.Microseconds())
	if u := m.s.Stats(); u != (work.Stats{}) || m.ready != 0 {
		m.t.Fatalf("left: %+v, %d committed and not begun", u, m.ready)
	}
}

// The negative control: a slot that is never returned is detected.
func TestASlotThatIsKeptIsSeen(t *testing.T) {
	t.Parallel()
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: 3, Gate: open})
	s.Offer(c.now(), jobs(1, 1)...)
	granted(s, c.now())
	if s.Age(c.now() + time.Hour.Microseconds()); s.Stats() == (work.Stats{}) {
		t.Error("a slot is in use, and nothing shows it")
	}
}
