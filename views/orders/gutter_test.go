package orders

import (
	"testing"
	"time"

	"backstop/internal/console"
	"backstop/internal/order"
	"backstop/views/ui"
)

// The way between two events never shrinks as the time between them grows, and long pauses are
// named.
func TestTheGutterGrowsWithTime(t *testing.T) {
	t.Parallel()
	p := &ui.Page{Language: "en", Zone: time.UTC}
	last := -1
	for _, w := range []struct {
		d    time.Duration
		step int
		name string
	}{
		{0, 0, ""},
		{9 * time.Millisecond, 0, ""},
		{10 * time.Millisecond, 1, ""},
		{99 * time.Millisecond, 1, ""},
		{100 * time.Millisecond, 2, ""},
		{time.Second, 3, "+1.000 s"},
		{12 * time.Second, 4, "+12.000 s"},
		{3*time.Minute + 12*time.Second, 5, "+3 m 12 s"},
		{5 * time.Hour, 7, "+5 h 00 m"},
		{365 * 24 * time.Hour, 8, "+365 d 00 h"},
	} {
		got := pauseOf(p, 1000, 1000+w.d.Microseconds())
		if got.step != w.step || got.name != w.name || got.step < last {
			t.Errorf("%s: %+v, want %d %q", w.d, got, w.step, w.name)
		}
		last = got.step
	}
	if got := pauseOf(p, 5000, 4000); got.step != 0 {
		t.Errorf("backwards: %+v", got)
	}
}

// What is planned begins after now, once; what is overdue is not ahead.
func TestNowIsBeforeWhatIsPlanned(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: now}
	at := func(d time.Duration) int64 { return now.Add(d).UnixMicro() }
	s := StoryData{Story: &console.Story{Items: []console.Item{
		{At: at(-time.Hour), Move: &order.History{}},
		{At: at(-time.Minute), Plan: &console.Plan{}},
		{At: at(time.Minute), Plan: &console.Plan{}},
		{At: at(time.Hour), Plan: &console.Plan{}},
	}}}
	s.shown = []int{0, 1, 2, 3}
	for i, want := range []bool{false, false, true, false} {
		if got := s.future(p, i); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
	if s.before(0) != s.Items[0].At || s.before(2) != s.Items[1].At {
		t.Error("measured from another event")
	}
	s.gap, s.omitted = 2, 9
	if s.before(2) != s.Items[2].At {
		t.Error("the way across events that are left out is not drawn")
	}
}
