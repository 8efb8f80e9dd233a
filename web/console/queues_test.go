package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/queue"
)

// The page of queues is true without Redis: 30 notifications came within ten minutes, 60 ended.
func TestThePageOfQueuesNeedsNoRedis(t *testing.T) {
	h := open(t)
	h.Queues = func(context.Context) (map[string]queue.Size, error) { return nil, errors.New("away") }
	now := h.DB.Now()
	for range 30 {
		change(t, h.DB, `INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, next_at, currency, amount)
			VALUES (?, 1, 0, 1, 'order.paid', 'webhook', '', 'queued', ?, ?, '', 0)`, h.DB.NewID(), now, now)
	}
	change(t, h.DB, "INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (0, ?, 55, 100, 5, 0, '', '')", now/60_000_000*60_000_000-120_000_000)
	for role, want := range map[string]int{access.Ops: http.StatusOK, access.Admin: http.StatusOK, access.Viewer: http.StatusForbidden} {
		page := h.Page(t, h.SignIn(t, role), "/queues?lang=en")
		if page.Status != want {
			t.Errorf("%s: %d", role, page.Status)
		}
		for _, sight := range []string{"Redis", "notify_retry", "In</dt>", "10 m 00 s", `href="/asynqmon/"`} {
			if want == http.StatusOK && !strings.Contains(page.Body, sight) {
				t.Errorf("%s: the page does not show %q", role, sight)
			}
		}
	}
}
