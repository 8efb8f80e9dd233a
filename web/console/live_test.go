package console

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/report"
	"backstop/web/console/live/livetest"
)

func (h *harness) watch(t *testing.T, cookie, path string, header ...string) *livetest.Source {
	t.Helper()
	return livetest.Open(t, "http://"+h.Addr+path, append(header, "Cookie", cookie)...)
}

func TestLiveShowsWhatChangesAndFillsTheGapAfterACut(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	w := h.watch(t, cookie, "/_/live?lang=en&topics=risk,attention")
	first := w.Next(t)
	for _, phrase := range []string{`id="risk"`, `id="attention"`, `id="live-at"`, "3,499.00"} {
		if !strings.Contains(first.Data, phrase) {
			t.Errorf("the first frame lacks %q", phrase)
		}
	}
	if strings.Contains(first.Data, `id="queues"`) {
		t.Error("an unrequested panel was sent")
	}
	h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, 4242) })
	seen := w.Until(t, "42.42")
	if strings.Contains(seen.Data, `id="attention"`) {
		t.Error("a panel that did not change was sent again")
	}
	w.Cut()
	w.Over(t)
	h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, 5858) })
	again := h.watch(t, cookie, "/_/live?lang=en&topics=risk,attention", "Last-Event-ID", seen.ID)
	again.Until(t, "101.00")
}

// A listener that comes back to the same run with the newest id is sent nothing
// until something changes; one that comes from another run is sent everything.
func TestLiveGoesOnWhereAListenerWas(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	stays := h.watch(t, cookie, "/_/live?lang=en&topics=attention") // keeps what was drawn
	id := stays.Next(t).ID
	back := h.watch(t, cookie, "/_/live?lang=en&topics=attention&seen="+id)
	other := h.watch(t, cookie, "/_/live?lang=en&topics=attention", "Last-Event-ID", "before-99")
	if e := other.Next(t); !strings.Contains(e.Data, `id="attention"`) {
		t.Errorf("after a restart: %+v", e)
	}
	_, err := h.DB.ExecContext(t.Context(),
		"INSERT INTO exceptions (id, kind, state, detail, opened_at, updated_at) VALUES (900, 'late_payment', 'open', '{}', 5, 5)")
	if err != nil {
		t.Fatal(err)
	}
	if e := back.Next(t); !strings.Contains(e.Data, "Late payment") {
		t.Errorf("who was up to date is sent what it had: %+v", e)
	}
	if zh := h.watch(t, cookie, "/_/live?lang=zh&topics=attention"); !han.MatchString(zh.Next(t).Data) {
		t.Error("another language is sent another's drawing")
	}
}

func TestLiveEndsWithTheServer(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	w := h.watch(t, cookie, "/_/live")
	w.Next(t)
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the shutdown waited %s for a stream", took)
	}
	w.Over(t)
}

func TestLiveNeedsASessionAndAnEventSource(t *testing.T) {
	t.Parallel()
	h := open(t)
	if w := h.watch(t, "", "/_/live"); w.Status != http.StatusSeeOther {
		t.Errorf("without a session: %d", w.Status)
	}
	if got := h.Page(t, h.SignIn(t, access.Viewer), "/_/live?range=1h"); got.Header.Get("Location") != "/?range=1h" {
		t.Errorf("a person: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if h.in.mayWatch("no such session", access.Viewer, access.ViewOverview) {
		t.Error("a session that ended still works")
	}
}
