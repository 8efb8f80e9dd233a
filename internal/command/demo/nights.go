package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/report"
	"backstop/internal/sweep"
)

// historyNights is how many nights of the past were swept.
const historyNights = 14

// sweeps writes the sweeps of the last nights: most found a few lost rows and pushed them, one corrected a
// figure, and during one no node was running.
func (h *history) sweeps(ctx context.Context, tx db.Tx) error {
	var rows []*sweep.Sweep
	for ago := historyNights; ago > 0; ago-- {
		at := calendar.At(time.UnixMicro(h.now).In(h.zone), 1-ago, 3, 30, 0) // the usual SWEEP_AT
		began := at.UnixMicro()
		if began > h.now {
			continue
		}
		s := &sweep.Sweep{
			ID: db.IDAt(began), Night: sweep.Number(at), BeganAt: began, WindowFrom: calendar.AddDays(at, -3).UnixMicro(), By: sweep.Clock,
			State: sweep.Missed, PushedText: []byte("[]"), DifferText: []byte("[]"),
		}
		if ago != 11 {
			h.swept(s, ago)
		}
		rows = append(rows, s)
	}
	if _, err := tx.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("write the sweeps of the past: %w", err)
	}
	return nil
}

// swept adds what a sweep found.
func (h *history) swept(s *sweep.Sweep, ago int) {
	ended, p99 := s.BeganAt+(20*time.Second+time.Duration(h.dice.IntN(60))*time.Second).Microseconds(), 8+h.dice.Int64N(30)
	s.State, s.Node, s.EndedAt, s.P99MS = sweep.Done, "demo", &ended, &p99
	s.LookedAt = 1_200_000 + h.dice.Int64N(300_000)
	var pushed []sweep.Pushed
	for i, what := range []string{sweep.OpenOrders, sweep.Deliveries, sweep.Compensations} {
		if n := h.dice.Int64N(4 * int64(i+1)); n > 1 {
			pushed = append(pushed, sweep.Pushed{What: what, Count: n})
		}
	}
	if len(pushed) > 0 {
		s.PushedText, _ = json.Marshal(pushed) // strings and numbers
	}
	if ago == 5 {
		s.DifferText, _ = json.Marshal([]sweep.Difference{sweep.DifferingMoney([]report.Difference{
			{Currency: "CNY", Orders: 3, Amount: 128_40, Counted: 4, CountedM: 178_40},
		}, true, func(int64) string { return "demo-flaky" })})
	}
}
