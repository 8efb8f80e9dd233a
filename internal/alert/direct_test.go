package alert

import (
	"testing"
	"time"
)

func TestTroubleOfTheDatabaseIsAnnouncedOnceAndSoIsItsEnd(t *testing.T) {
	t.Parallel()
	target := &fickle{failures: 1}
	d := NewDirect([]Target{target}, Style{Zone: time.UTC})
	at := time.Now()
	for i, step := range []struct {
		after   time.Duration
		trouble bool
		got     int // texts that arrived
	}{
		{0, true, 0},
		{10 * time.Second, false, 0}, // a short one is not announced
		{20 * time.Second, true, 0},
		{41 * time.Second, true, 0}, // the target refuses
		{42 * time.Second, true, 1},
		{43 * time.Second, true, 1},
		{60 * time.Second, false, 2},
		{70 * time.Second, true, 2},
		{200 * time.Second, true, 2}, // notified recently
		{700 * time.Second, true, 3},
	} {
		d.now = func() time.Time { return at.Add(step.after) }
		_ = d.Observe(t.Context(), DatabaseDown, "n1", step.trouble)
		if target.got != step.got {
			t.Fatalf("step %d: %d texts, want %d", i, target.got, step.got)
		}
	}
}
