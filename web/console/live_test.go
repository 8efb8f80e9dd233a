package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/report"
)

// event is one server-sent event.
type event struct{ id, name, data string }

// watcher is a browser's event source.
type watcher struct {
	events chan event
	end    chan struct{} // closed when the stream is over
	cut    func()
	status int
}

func (h *harness) watch(t *testing.T, cookie, path string, header ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.Addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cookie", cookie)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{} // a connection of its own: cutting it must cut no other
	res, err := transport.RoundTrip(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	w := &watcher{events: make(chan event, 100), end: make(chan struct{}), cut: cancel, status: res.StatusCode}
	t.Cleanup(cancel)
	go func() {
		defer close(w.end)
		defer transport.CloseIdleConnections()
		defer res.Body.Close()
		w.read(res.Body)
	}()
	return w
}

func (w *watcher) read(body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	var e event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data += value + "\n"
		case "":
			if e.name != "" {
				w.events <- e
			}
			e = event{}
		}
	}
}

func (w *watcher) next(t *testing.T) event {
	t.Helper()
	select {
	case e := <-w.events:
		return e
	case <-w.end:
		select {
		case e := <-w.events: // came before the end
			return e
		default:
		}
		t.Fatal("the stream has ended")
	case <-time.After(time.Minute):
		t.Fatal("no event within a minute")
	}
	return event{}
}

// until waits for an event that says something.
func (w *watcher) until(t *testing.T, text string) event {
	t.Helper()
	for range 50 {
		if e := w.next(t); strings.Contains(e.data, text) {
			return e
		}
	}
	t.Fatalf("50 events without %q", text)
	return event{}
}

func TestLiveShowsWhatChangesAndFillsTheGapAfterACut(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	w := h.watch(t, cookie, "/_/live?lang=en&topics=risk,todo")
	first := w.next(t)
	for _, sight := range []string{`id="risk"`, `id="todo"`, `id="live-at"`, "3,499.00"} {
		if !strings.Contains(first.data, sight) {
			t.Errorf("the first frame lacks %q", sight)
		}
	}
	if strings.Contains(first.data, `id="queues"`) {
		t.Error("an unrequested panel was sent")
	}
	h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, 4242) })
	seen := w.until(t, "42.42")
	if strings.Contains(seen.data, `id="todo"`) {
		t.Error("a panel that did not change was sent again")
	}
	w.cut()
	<-w.end
	h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, 5858) })
	again := h.watch(t, cookie, "/_/live?lang=en&topics=risk,todo", "Last-Event-ID", seen.id)
	again.until(t, "101.00")
}

// A listener that comes back to the same run with the newest id is sent nothing
// until something changes; one that comes from another run is sent everything.
func TestLiveGoesOnWhereAListenerWas(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	stays := h.watch(t, cookie, "/_/live?lang=en&topics=todo") // keeps what was drawn
	id := stays.next(t).id
	back := h.watch(t, cookie, "/_/live?lang=en&topics=todo&seen="+id)
	other := h.watch(t, cookie, "/_/live?lang=en&topics=todo", "Last-Event-ID", "before-99")
	if e := other.next(t); !strings.Contains(e.data, `id="todo"`) {
		t.Errorf("after a restart: %+v", e)
	}
	_, err := h.DB.ExecContext(t.Context(),
		"INSERT INTO exceptions (id, kind, state, detail, opened_at, updated_at) VALUES (900, 'late_payment', 'open', '{}', 5, 5)")
	if err != nil {
		t.Fatal(err)
	}
	if e := back.next(t); !strings.Contains(e.data, "Late payment") {
		t.Errorf("who was up to date is sent what it had: %+v", e)
	}
	if zh := h.watch(t, cookie, "/_/live?lang=zh&topics=todo"); !han.MatchString(zh.next(t).data) {
		t.Error("another language is sent another's drawing")
	}
}

// One query of a topic serves all who listen.
func TestListenersShareTheQueries(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	var reads atomic.Int64
	read := h.in.live.topics[0].read
	h.in.live.topics[0].read = func(ctx context.Context, of string) (drawing, error) {
		reads.Add(1)
		return read(ctx, of)
	}
	start := time.Now()
	var all []*watcher
	for _, role := range []string{access.Ops, access.Viewer, access.Admin} {
		cookie := h.SignIn(t, role)
		for i := range liveEach {
			all = append(all, h.watch(t, cookie, fmt.Sprintf("/_/live?lang=%s&topics=risk", []string{"zh", "en"}[i%2])))
		}
	}
	for _, w := range all {
		w.next(t)
	}
	if most := int64(time.Since(start)/h.in.live.topics[0].every) + 1; reads.Load() > most {
		t.Errorf("%d listeners made %d queries, want at most %d", len(all), reads.Load(), most)
	}
}

// Pages that were left keep their streams until the next beat: the newest page gets the place of
// the oldest, which is told so and may poll.
func TestTheNewestPageTakesTheOldestsPlace(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	var all []*watcher
	for range liveEach {
		w := h.watch(t, cookie, "/_/live?topics=risk")
		w.next(t)
		all = append(all, w)
	}
	for _, old := range all[:3] {
		newest := h.watch(t, cookie, "/_/live?topics=risk")
		if newest.status != http.StatusOK {
			t.Fatalf("one more than a person may have: %d", newest.status)
		}
		newest.next(t)
		e := old.next(t)
		for e.name == "panels" {
			e = old.next(t)
		}
		if e.name != "replaced" {
			t.Errorf("the oldest was sent %q", e.name)
		}
		select {
		case <-old.end:
		case <-time.After(10 * time.Second):
			t.Error("the oldest stream stays open")
		}
	}
	for _, w := range all[3:] {
		select {
		case <-w.end:
			t.Error("a younger stream was ended")
		default:
		}
	}
}

func TestLiveEndsWithTheServer(t *testing.T) {
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	w := h.watch(t, cookie, "/_/live")
	w.next(t)
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the shutdown waited %s for a stream", took)
	}
	select {
	case <-w.end:
	case <-time.After(time.Minute):
		t.Error("the stream outlived the server")
	}
}

// A listener that is gone is forgotten at the next write, and nothing goes on running for it.
func TestListenersThatAreGoneAreForgotten(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	for range 5 {
		w := h.watch(t, cookie, "/_/live?topics=queues,risk")
		w.next(t)
		w.cut()
	}
	for deadline := time.Now().Add(liveBeat + 10*time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, 1) })
		h.in.live.mu.Lock()
		left, running := len(h.in.live.listeners), h.in.live.running
		h.in.live.mu.Unlock()
		if left == 0 && !running {
			return
		}
	}
	t.Error("disconnected listeners are still served")
}

func TestLiveNeedsASessionAndAnEventSource(t *testing.T) {
	h := open(t)
	if w := h.watch(t, "", "/_/live"); w.status != http.StatusSeeOther {
		t.Errorf("without a session: %d", w.status)
	}
	if got := h.Page(t, h.SignIn(t, access.Viewer), "/_/live?range=1h"); got.Header.Get("Location") != "/?range=1h" {
		t.Errorf("a person: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if h.in.live.isAllowed("no such session", access.Viewer) {
		t.Error("a session that ended still works")
	}
}
