package work_test

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/base/work"
)

// burst is a node whose single writer is always busy: each of its turns creates rows and commits
// claims, and attempts take a third of a turn.
type burst struct {
	c clock
	s *work.Slots
	// naive creates a row as claimed only if there is a free slot, and holds slots while their
	// claims wait for a turn.
	naive   bool
	lanes   int64
	rows    map[int64][]int64 // due and not claimed, by lane
	toClaim []work.Slot
	refill  []int64
	next    int64
	most    int // jobs that were claimed without a slot
}

const (
	burstSlots = 50
	perTurn    = 64  // rows created per turn
	claims     = 256 // maximum number of claims committed per turn
)

func newBurst(lanes int64, backlog int, naive bool) *burst {
	b := &burst{c: 1e15, naive: naive, lanes: lanes, rows: map[int64][]int64{}}
	b.s = work.NewSlots(work.SlotOptions{Size: burstSlots, Gate: func(int64) work.Gate { return work.Gate{Open: true, Max: 10} }})
	for range backlog {
		b.row()
	}
	for lane := range b.rows {
		b.s.More(b.c.now(), lane)
	}
	return b
}

func (b *burst) row() work.Job {
	b.next++
	j := work.Job{ID: b.next, Lane: b.next%b.lanes + 1}
	b.rows[j.Lane] = append(b.rows[j.Lane], j.ID)
	return j
}

func (b *burst) claimed(x work.Slot) {
	b.rows[x.Lane] = slices.DeleteFunc(b.rows[x.Lane], func(id int64) bool { return id == x.ID })
}

func (b *burst) backlog() (n int) {
	for _, ids := range b.rows {
		n += len(ids)
	}
	return n
}

// grant returns the jobs that run now.
func (b *burst) grant() (run []work.Slot) {
	grant, refill, _ := b.s.Next(b.c.now())
	b.refill = append(b.refill, refill...)
	for _, x := range grant {
		switch {
		case x.Claimed:
			run = append(run, x)
		case x.Ahead && b.naive:
			b.s.Return(b.c.now(), x, true)
		default:
			b.toClaim = append(b.toClaim, x)
		}
	}
	return run
}

// reserve creates a row, and reports whether it is created as claimed.
func (b *burst) reserve() (work.Slot, bool) {
	j := b.row()
	used := b.s.Stats()
	x, ok := b.s.Reserve(b.c.now(), j.ID, j.Lane)
	if ok && b.naive && used.Quick+used.Ahead >= burstSlots-burstSlots/10 {
		b.s.Return(b.c.now(), x, false)
		ok = false
	}
	if !ok {
		b.s.Offer(b.c.now(), j)
	}
	return x, ok
}

// turn is one transaction and the runs until the next one.
func (b *burst) turn() {
	n := min(len(b.toClaim), claims)
	committed := b.toClaim[:n:n]
	b.toClaim = b.toClaim[n:]
	for range perTurn {
		if x, ok := b.reserve(); ok {
			committed = append(committed, x)
		}
	}
	var run []work.Slot
	for _, x := range committed {
		if b.claimed(x); x.Ahead {
			b.s.Committed(x)
		} else {
			run = append(run, x)
		}
	}
	b.most = max(b.most, b.s.Stats().Ahead)
	for range 3 {
		run = append(run, b.grant()...)
		b.c.pass(3 * time.Millisecond)
		for _, x := range run {
			b.s.Done(b.c.now(), x, 3*time.Millisecond, true)
		}
		run = nil
	}
	for _, lane := range b.refill {
		n := min(len(b.rows[lane]), work.PageSize)
		b.s.Refilled(b.c.now(), lane, jobs(lane, b.rows[lane][:n]...), n == work.PageSize)
	}
	b.refill = nil
}

// However long a burst lasts, the jobs that wait when it begins are claimed in a bounded number
// of the writer's turns, and those that it creates do not wait, with many recipients or three.
func TestABurstLeavesNoBacklog(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int64{20, 3} {
		b := newBurst(lanes, 2000, false)
		for range 150 {
			b.turn()
		}
		for range 200 {
			if b.turn(); b.backlog() > 0 {
				t.Fatalf("%d lanes: %d rows wait for a claim", lanes, b.backlog())
			}
		}
		if b.most > 4096 {
			t.Errorf("%d lanes: %d jobs were claimed ahead", lanes, b.most)
		}
	}
}

// Jobs that are created faster than they run for a moment are created as claimed, as many as
// the node runs in a second: one that is not costs a nudge and an update, just when there is
// most to do.
func TestWhatRunsWithinASecondIsCreatedAsClaimed(t *testing.T) {
	t.Parallel()
	const lanes = 20
	c := clock(1e15)
	s := work.NewSlots(work.SlotOptions{Size: burstSlots, Gate: func(int64) work.Gate { return work.Gate{Open: true, Max: 10} }})
	id := int64(0)
	for lane := range int64(lanes) {
		id++
		s.Offer(c.now(), jobs(lane, id)...)
	}
	for _, x := range granted(s, c.now()) {
		s.Done(c.now(), x, 4*time.Millisecond, true)
	}
	reserved := map[int64]int{}
	reserve := func(lane int64) {
		id++
		if _, ok := s.Reserve(c.now(), id, lane); ok {
			reserved[lane]++
		}
	}
	for i := range int64(3000) { // 50 slots of 4 ms run 12,500 in a second
		reserve(i % lanes)
	}
	for lane := range int64(lanes) {
		if reserved[lane] != 3000/lanes {
			t.Errorf("lane %d: %d of %d are created as claimed", lane, reserved[lane], 3000/lanes)
		}
	}
	for range 3000 {
		reserve(0)
	}
	if n := reserved[0]; n > 1024 {
		t.Errorf("one lane has %d of the node's claims", n)
	}
}

// The negative control: slots that wait for a turn with their claims are too few, and the
// backlog grows as long as the burst lasts.
func TestWhereSlotsWaitForClaimsABurstLeavesABacklog(t *testing.T) {
	t.Parallel()
	b := newBurst(20, 100, true)
	for range 240 {
		b.turn()
	}
	if n := b.backlog(); n < 1000 {
		t.Errorf("%d rows wait for a claim", n)
	}
}

// Jobs that are claimed ahead are bound to this node: a hanging lane gets few of them, and they
// are released as soon as the lane closes.
func TestAHangingLaneIsNotClaimedAhead(t *testing.T) {
	t.Parallel()
	c, gate := clock(1e15), work.Gate{Open: true, Max: 10}
	s := work.NewSlots(work.SlotOptions{Size: burstSlots, Gate: func(int64) work.Gate { return gate }})
	s.Offer(c.now(), jobs(1, 1)...)
	s.Done(c.now(), granted(s, c.now())[0], 100*time.Millisecond, true)
	id, reserved := int64(1), 0
	reserve := func() {
		id++
		if x, ok := s.Reserve(c.now(), id, 1); ok {
			reserved++
			s.Committed(x)
		}
	}
	for range 200 {
		reserve()
	}
	if want := 6 * 10; reserved != want { // six at a time, ten times a second
		t.Errorf("%d are claimed ahead, want %d", reserved, want)
	}
	running := granted(s, c.now())
	c.pass(1100 * time.Millisecond) // none of them ends
	if before := reserved; len(running) == 6 {
		if reserve(); reserved != before {
			t.Error("a lane that hangs is claimed ahead")
		}
	}
	gate = work.Gate{}
	for _, x := range running {
		s.Done(c.now(), x, 2*time.Second, false)
	}
	released := 0
	for _, x := range granted(s, c.now()) {
		if x.Closed {
			released++
			s.Return(c.now(), x, true)
		}
	}
	if u := s.Stats(); released != reserved-len(running) || u.Ahead != 0 || u.Jobs != 0 {
		t.Errorf("%d of %d are released, left: %+v", released, reserved-len(running), u)
	}
}
