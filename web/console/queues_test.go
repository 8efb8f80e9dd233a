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
	t.Parallel()
	h := open(t)
	h.Queues = func(context.Context) (map[string]queue.Size, error) { return nil, errors.New("away") }
	now := h.DB.Now()
	for range 30 {
		change(t, h.DB,
			`INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, next_at, currency, amount)
			VALUES (?, 1, 0, 1, 'order.paid', 'webhook', '', 'queued', ?, ?, '', 0)`, h.DB.NewID(), now, now)
	}
	change(t, h.DB,
		"INSERT INTO report_minutes (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (0, ?, 55, 100, 5, 0, '', '')",
		now/60_000_000*60_000_000-120_000_000)
	for role, want := range map[string]int{access.Ops: http.StatusOK, access.Admin: http.StatusOK, access.Viewer: http.StatusForbidden} {
		page := h.Page(t, h.SignIn(t, role), "/queues?lang=en")
		if page.Status != want {
			t.Errorf("%s: %d", role, page.Status)
		}
		for _, phrase := range []string{"Redis", "notify_retry", "In</dt>", "10 m 00 s", `href="/asynqmon/"`} {
			if want == http.StatusOK && !strings.Contains(page.Body, phrase) {
				t.Errorf("%s: the page does not show %q", role, phrase)
			}
		}
	}
}

// Ops pauses a queue with a reason: all pages that it affects say so, to whoever may see them,
// until it is resumed.
func TestAQueueIsPausedFromItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	ops, admin, viewer := h.SignIn(t, access.Ops), h.SignIn(t, access.Admin), h.SignIn(t, access.Viewer)
	const path, why = "/queues/notify", "a merchant moves <b>servers</b>"
	page := h.Page(t, ops, path+"?lang=en").Body
	if !strings.Contains(page, "Running") || !strings.Contains(page, "notify_slow") {
		t.Error("the page of a queue that runs")
	}
	form := formOf(t, page, path+"/pause")
	for what, want := range map[string]struct {
		got    int
		status int
	}{
		"an unknown queue":   {h.Page(t, ops, "/queues/nothing").Status, http.StatusNotFound},
		"one that cannot be": {h.Page(t, ops, "/queues/timeout").Status, http.StatusNotFound},
		"pausing that one":   {h.Post(t, ops, "/queues/timeout/pause", "form_key", "t", "reason", why).Status, http.StatusNotFound},
		"a viewer":           {h.Page(t, viewer, path).Status, http.StatusForbidden},
		"an admin pauses":    {h.Post(t, admin, path+"/pause", "form_key", "a", "reason", why).Status, http.StatusForbidden},
		"a short reason": {
			h.Post(t, ops, path+"/pause", append(form, "reason", "why")...).Status,
			http.StatusUnprocessableEntity,
		},
		"resuming what runs":       {h.Post(t, ops, path+"/resume", "form_key", "r", "reason", why).Status, http.StatusConflict},
		"an admin reads the state": {h.Page(t, admin, path).Status, http.StatusOK},
	} {
		if want.got != want.status {
			t.Errorf("%s: %d, want %d", what, want.got, want.status)
		}
	}
	if strings.Contains(h.Page(t, admin, path).Body, path+"/pause") {
		t.Error("an admin is offered to pause")
	}
	for range 2 { // a form acts once
		if got := h.Post(t, ops, path+"/pause", append(form, "reason", why)...); got.Status != http.StatusSeeOther ||
			!strings.HasPrefix(got.Header.Get("Location"), path+"?form=") {
			t.Fatalf("%d to %s", got.Status, got.Header.Get("Location"))
		}
	}
	page = h.Page(t, ops, path+"?lang=en").Body
	if !strings.Contains(page, "Paused by") || !strings.Contains(page, "moves &lt;b&gt;servers") ||
		strings.Contains(page, `action="`+path+`/pause"`) {
		t.Error("the page of a paused queue")
	}
	const banner, link = "No merchant is notified until they are resumed", "Open the queue"
	for _, p := range []string{"/", "/orders", "/notifications", "/merchants", "/queues"} {
		if page := h.Page(t, ops, p+"?lang=en").Body; !strings.Contains(page, banner) || !strings.Contains(page, link) {
			t.Errorf("%s does not say that notifications are paused", p)
		}
	}
	if page := h.Page(t, viewer, "/orders?lang=en").Body; !strings.Contains(page, banner) || strings.Contains(page, link) {
		t.Error("a viewer does not see the pause, or gets a link to a page that is refused")
	}
	if page := h.Page(t, ops, "/refunds?lang=en").Body; strings.Contains(page, banner) {
		t.Error("refunds do not wait for notifications")
	}
	if got := h.Post(t, ops, path+"/resume", append(formOf(t, page, path+"/resume"), "reason",
		"the servers are moved")...); got.Status != http.StatusSeeOther {
		t.Fatalf("resume: %d", got.Status)
	}
	if page := h.Page(t, viewer, "/orders?lang=en").Body; strings.Contains(page, banner) {
		t.Error("resumed, the banner stays")
	}
	if n := number(t, h.DB, "SELECT count(*) FROM paused_queues"); n != 0 {
		t.Errorf("%d pauses are left", n)
	}
}
