package report

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestTheLastAnswersOfAMerchantNeverGoBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec(t, d, "INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (7, 'm7', 'M7', '[]', '{}', 0, 0), (8, 'm8', 'M8', '[]', '{}', 0, 0)")
		now := d.Now()
		at := func(ago time.Duration, r Result) {
			x := NewDelta(now - ago.Microseconds())
			x.Attempt(7, r, 30*time.Millisecond)
			put(t, d, x)
			foldAll(t, d)
		}
		at(time.Minute, OK)
		at(2*time.Minute, OK) // folded late
		at(30*time.Second, Retried)
		at(40*time.Second, Failed)
		exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at)"+
			" VALUES (1, 1, 7, 1, 'order.paid', 'webhook', '', 'retry_wait', ?, 0), (2, 1, 7, 1, 'order.paid', 'webhook', '', 'queued', ?, 0)", now+5, now+3)
		s, err := Of(t.Context(), d, []int64{7, 8}, now-time.Hour.Microseconds())
		if err != nil {
			t.Fatal(err)
		}
		if s.OKAt[7] != now-minuteUS || s.FailedAt[7] != now-minuteUS/2 || s.DueAt[7] != now+3 {
			t.Errorf("last ok %d, failed %d, due %d; now is %d", s.OKAt[7], s.FailedAt[7], s.DueAt[7], now)
		}
		if h := s.Health[7]; h.OK != 2 || h.Retried != 1 || h.Failed != 1 || h.Attempts() != 4 {
			t.Errorf("health %+v", h.Point)
		}
		if _, seen := s.Health[8]; seen || s.OKAt[8] != 0 || s.DueAt[8] != 0 {
			t.Error("a merchant that was never notified has figures")
		}
	})
}
