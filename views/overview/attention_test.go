package overview

import (
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/console"
	"backstop/views/ui"
)

// Whoever may not read alerts sees the breakers that are open, not those that have closed and
// whose incident is not over yet.
func TestAClosedBreakerIsNotShownAsOpen(t *testing.T) {
	t.Parallel()
	since := int64(1)
	for _, c := range []struct {
		rule    string
		cleared *int64
		alerts  bool
		want    int
	}{
		{alert.BreakerOpened, nil, false, 1},
		{alert.BreakerOpened, &since, false, 0},
		{alert.BreakerOpened, &since, true, 1},
		{alert.BooksDiffer, nil, false, 0},
	} {
		line := console.Todo{Matter: console.MatterIncident, Kind: c.rule, Incident: &alert.Incident{
			Rule: c.rule, State: alert.Open,
			ClearedAt: c.cleared,
		}}
		got := NewAttention(&ui.Page{Language: "en", Zone: time.UTC}, console.Attention{Lines: []console.Todo{line}},
			console.Viewer{Alerts: c.alerts}, console.AttentionFilter{})
		if len(got.Now) != c.want {
			t.Errorf("%s, calm %t, reads alerts %t: %d lines, want %d", c.rule, c.cleared != nil, c.alerts, len(got.Now), c.want)
		}
	}
}
