package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/web/console/live"
	"backstop/web/console/live/livetest"
)

// batch plans sending all exhausted notifications again, and starts it at a rate.
func (h *harness) batch(t *testing.T, cookie string, rate int) (path string, id int64) {
	t.Helper()
	path = h.Post(t, cookie, "/batches/plan/notifications/resend?status=exhausted", "pick", "all").Header.Get("Location")
	id, ok := batch.ParseNo(strings.TrimPrefix(path, "/batches/"))
	if !ok {
		t.Fatalf("planned: %q", path)
	}
	h.onBatch(t, cookie, path, "rate", "rate", strconv.Itoa(rate))
	return path, id
}

// onBatch sends one of the forms on a batch's page.
func (h *harness) onBatch(t *testing.T, cookie, path, what string, fields ...string) {
	t.Helper()
	got := h.Post(t, cookie, path+"/"+what, append([]string{"form_key", act.NewKey(), "reason", "their server is back"}, fields...)...)
	if got.Status != http.StatusSeeOther {
		t.Fatalf("%s: %d %s", what, got.Status, got.Body)
	}
}

func (h *harness) found(t *testing.T, id int64) *batch.Batch {
	t.Helper()
	b, err := batch.Find(t.Context(), h.DB, id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var takenUp = regexp.MustCompile(`<strong>(\d+) of (\d+) processed</strong>`)

// Two people watch a batch: each gets how far it is, at most a frame a second, through a
// pause and its end.
func TestABatchIsWatchedThroughItsPauseToItsEnd(t *testing.T) {
	t.Parallel()
	const rows, rate = 150, 20
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	exhaust(t, h.DB, rows)
	ops, viewer := h.SignIn(t, access.Ops), h.SignIn(t, access.Viewer)
	path, id := h.batch(t, ops, rate)
	change(t, h.DB, "DELETE FROM deliveries WHERE id = (SELECT object_id FROM batch_rows WHERE batch_id = ? AND number = 5)",
		id) // less than 1 % of it
	stream := "/_/live?lang=en&page=" + path
	a, b := h.watch(t, ops, stream), h.watch(t, viewer, stream)
	for _, w := range []*livetest.Source{a, b} {
		if e := w.Next(t); !strings.Contains(e.Data, `data-state="planned"`) || !strings.Contains(e.Data, "Nothing has been done yet") ||
			e.Name != "panels" {
			t.Errorf("before its start: %+v", e)
		}
	}
	begun := time.Now()
	h.onBatch(t, ops, path, "start", "amount_CNY", "1500.00")
	frames, last := 0, 0
	for last < rows/4 {
		e := a.Next(t)
		frames++
		if !strings.Contains(e.Data, `id="batch-progress"`) { // another version
			continue
		}
		m := takenUp.FindStringSubmatch(e.Data)
		if m == nil {
			t.Fatalf("a frame: %s", e.Data)
		}
		n, _ := strconv.Atoi(m[1])
		if n < last || m[2] != fmt.Sprint(rows) {
			t.Errorf("%s of %s after %d", m[1], m[2], last)
		}
		if last = n; last > 10 {
			for _, phrase := range []string{" rows per second, about ", " left", "Amount done", "No longer stored: 1", `class="money"`} {
				if !strings.Contains(e.Data, phrase) {
					t.Errorf("a frame lacks %q: %s", phrase, e.Data)
				}
			}
		}
	}
	if most := int(time.Since(begun)/(live.Every/2)) + 2; frames > most {
		t.Errorf("%d frames in %s", frames, time.Since(begun))
	}

	// A pause takes effect within two seconds, and the frames say so.
	h.onBatch(t, ops, path, "pause")
	until := time.Now().Add(2 * time.Second)
	for _, w := range []*livetest.Source{a, b} {
		w.Until(t, `data-state="paused"`)
	}
	quiet(t, time.Until(until)) // what was begun may end until then
	paused := h.found(t, id)
	if paused.Ended() >= rows {
		t.Errorf("two seconds after the pause %d were begun", paused.Ended())
	}
	// For two seconds: three more steps, if it ran.
	waittest.Stays(t, "nothing is begun after the pause", 2*time.Second, func() bool {
		now := h.found(t, id)
		return now.State == batch.Paused && now.Ended() == paused.Ended()
	})

	// One goes away: the frames of the other go on.
	a.Cut()
	a.Over(t)
	h.onBatch(t, ops, path, "resume")
	b.Until(t, `data-state="running"`)
	e := b.Until(t, `data-state="done"`)
	if !strings.Contains(e.Data, fmt.Sprintf("%d of %d processed", rows, rows)) || !strings.Contains(e.Data, "1490") &&
		!strings.Contains(e.Data, "1,490.00") {
		t.Errorf("at its end: %s", e.Data)
	}
}

// A stop is shown with what is left; nothing more is processed.
func TestABatchThatIsStoppedSaysSoToWhoWatches(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	exhaust(t, h.DB, 60)
	ops := h.SignIn(t, access.Ops)
	path, id := h.batch(t, ops, 10)
	w := h.watch(t, ops, "/_/live?lang=en&page="+path)
	h.onBatch(t, ops, path, "start", "amount_CNY", "600.00")
	w.Until(t, `data-state="running"`)
	h.onBatch(t, ops, path, "stop")
	w.Until(t, `data-state="stopped"`)
	stopped := h.found(t, id)
	page := h.Page(t, ops, path+"?lang=en").Body
	if left := fmt.Sprintf("%d rows were not processed", stopped.ToDo-stopped.Ended()); stopped.Ended() == 60 ||
		stopped.StoppedBecause != batch.ByPerson || !strings.Contains(page, left) || !strings.Contains(page, "stopped by an operator") {
		t.Errorf("%d of 60 were begun, and the page lacks %q", stopped.Ended(), left)
	}
	if got := h.Post(t, ops, path+"/resume", "form_key", act.NewKey(), "reason",
		"their server is back"); got.Status != http.StatusConflict {
		t.Errorf("resumed: %d", got.Status)
	}
}
