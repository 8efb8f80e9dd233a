package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/waittest"
	"backstop/web/console/live/livetest"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// site serves streams of three panels whose text a test sets: to all, a batch to who asks for it,
// and to each operator their own.
type site struct {
	*Stream[View]
	addr    string
	reads   atomic.Int64  // of the panel "risk"
	refuses atomic.Bool   // who watches may no longer
	text    atomic.Value  // of the panel "risk"
	age     time.Duration // maximum age of all figures
}

const fresh = 20 * time.Millisecond

func open(t *testing.T, change func(*site)) *site {
	t.Helper()
	s := &site{age: fresh}
	s.text.Store("nothing")
	shows := func(name string, text func(of string) string) func(context.Context, string) (Drawing[View], error) {
		return func(_ context.Context, of string) (Drawing[View], error) {
			return func(v View) templ.Component {
				return templ.Raw(fmt.Sprintf("<section id=%q>\n%s in %s as %s</section>\n", name, text(of), v.Language, v.Roles))
			}, nil
		}
	}
	risk := func(string) string { s.reads.Add(1); return s.text.Load().(string) }
	s.Stream = New(Options[View]{
		Topics: []Topic[View]{
			{Name: "risk", Every: s.age, Read: func(ctx context.Context, of string) (Drawing[View], error) {
				text := risk(of)
				return shows("risk", func(string) string { return text })(ctx, of)
			}},
			{Name: "range", Every: s.age, Ranged: true, Read: shows("range", func(of string) string { return "of " + of })},
			{Name: "batch", Every: s.age, Ranged: true, Asked: true, Read: shows("batch", func(of string) string { return "batch " + of })},
			{Name: "bell", Every: s.age, Ranged: true, Own: true, Read: shows("bell", func(of string) string { return "operator " + of })},
			{Name: "broken", Every: s.age, Read: func(context.Context, string) (Drawing[View], error) { return nil, errors.New("no database") }},
		},
		Page: func(v View) View { return v },
		At:   func(_ View, at time.Time) templ.Component { return templ.Raw("<time id=\"live-at\"></time>\n") },
		Log:  slog.New(slog.DiscardHandler),
	})
	s.every = 40 * time.Millisecond
	if change != nil {
		change(s)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true, Immutable: true})
	app.Get("/", func(c *fiber.Ctx) error {
		w := Watch{
			View:     View{Language: c.Query("lang", "en"), Roles: access.RolesOf(c.Query("role")), Of: c.Query("of")},
			Operator: int64(c.QueryInt("operator")), Seen: c.Get("Last-Event-ID"),
			Allowed: func() bool { return !s.refuses.Load() },
		}
		if names := c.Query("topics"); names != "" {
			w.Topics = strings.Split(names, ",")
		}
		if err := s.Serve(c, w); err != nil {
			return fiber.NewError(http.StatusTooManyRequests, err.Error())
		}
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(l) }()
	t.Cleanup(func() {
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := app.ShutdownWithContext(ctx)
		l.Close() // a server that had not begun yet begins after its shutdown
		if err = errors.Join(err, <-served); err != nil {
			t.Error(err)
		}
	})
	s.addr = l.Addr().String()
	return s
}

// watch opens a stream with these parameters.
func (s *site) watch(t *testing.T, parameters string, header ...string) *livetest.Source {
	t.Helper()
	return livetest.Open(t, "http://"+s.addr+"/?"+parameters, header...)
}

// left waits until there are so many listeners, and the loop runs or not.
func (s *site) left(t *testing.T, want int, running bool) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%d listeners, running %t", want, running), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.listeners) == want && s.running == running
	})
}

func TestAListenerGetsWhatItAsksForAndWhatChanges(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	w := s.watch(t, "operator=7&of=1h&role=ops")
	first := w.Next(t)
	for _, want := range []string{"nothing in en as ops", "of 1h in en", "operator 7 in en as \n", `id="live-at"`} {
		if !strings.Contains(strings.ReplaceAll(first.Data, "</section>", "\n"), want) {
			t.Errorf("the first frame lacks %q: %q", want, first.Data)
		}
	}
	if first.Name != "panels" || strings.Contains(first.Data, "batch") || strings.Contains(first.Data, "broken") {
		t.Errorf("the first frame: %+v", first)
	}
	s.text.Store("something")
	if e := w.Next(t); !strings.Contains(e.Data, "something") || strings.Contains(e.Data, `id="range"`) {
		t.Errorf("after a change: %q", e.Data)
	}
	if e := s.watch(t, "operator=7&of=bat_1&topics=batch").Next(t); !strings.Contains(e.Data, "batch bat_1") ||
		strings.Contains(e.Data, `id="risk"`) {
		t.Errorf("who asks for a batch: %q", e.Data)
	}
	if e := s.watch(t, "operator=8&topics=risk&lang=zh").Next(t); !strings.Contains(e.Data, "something in zh") {
		t.Errorf("in another language: %q", e.Data)
	}
}

// A listener that comes back to the same run with the newest id is sent nothing until something
// changes; one that comes from another run is sent everything.
func TestAListenerGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	stays := s.watch(t, "topics=risk") // keeps what was drawn
	id := stays.Next(t).ID
	back := s.watch(t, "topics=risk", "Last-Event-ID", id)
	if e := s.watch(t, "topics=risk", "Last-Event-ID", "before-99").Next(t); !strings.Contains(e.Data, "nothing") {
		t.Errorf("from another run: %+v", e)
	}
	s.text.Store("something")
	if e := back.Next(t); !strings.Contains(e.Data, "something") {
		t.Errorf("who was up to date is sent what it had: %+v", e)
	}
}

// A frame includes what earlier ones would have: a slow listener gets the newest, and no more than
// one in half an interval.
func TestFramesReplaceEachOther(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	w := s.watch(t, "topics=risk")
	begun, frames := time.Now(), 0
	for i := range 10 {
		text := fmt.Sprintf("the %dth", i)
		s.text.Store(text)
		for {
			frames++
			if strings.Contains(w.Next(t).Data, text) {
				break
			}
		}
	}
	if most := int(time.Since(begun)/(s.every/2)) + 2; frames > most {
		t.Errorf("%d frames in %s, at most %d", frames, time.Since(begun), most)
	}
}

// One query of a topic serves all who listen.
func TestListenersShareTheQueries(t *testing.T) {
	t.Parallel()
	s := open(t, func(s *site) { s.Topics[0].Every = 2 * time.Second })
	start := time.Now()
	var all []*livetest.Source
	for operator := range 3 {
		for i := range Each {
			all = append(all, s.watch(t, fmt.Sprintf("operator=%d&topics=risk&lang=%s", operator, []string{"zh", "en"}[i%2])))
		}
	}
	for _, w := range all {
		w.Next(t)
	}
	if most := int64(time.Since(start)/(2*time.Second)) + 1; s.reads.Load() > most {
		t.Errorf("%d listeners made %d queries, want at most %d", len(all), s.reads.Load(), most)
	}
}

// Pages that were left keep their streams until the next beat: the newest page gets the place of
// the oldest, which is told so and may poll.
func TestTheNewestPageTakesTheOldestsPlace(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	var all []*livetest.Source
	for range Each {
		w := s.watch(t, "topics=risk")
		w.Next(t)
		all = append(all, w)
	}
	other := s.watch(t, "operator=2&topics=risk")
	for _, old := range all[:3] {
		newest := s.watch(t, "topics=risk")
		if newest.Status != http.StatusOK {
			t.Fatalf("one more than a person may have: %d", newest.Status)
		}
		newest.Next(t)
		e := old.Next(t)
		for e.Name == "panels" {
			e = old.Next(t)
		}
		if e.Name != "replaced" {
			t.Errorf("the oldest was sent %q", e.Name)
		}
		old.Over(t)
	}
	for _, w := range append(all[3:], other) {
		select {
		case <-w.End:
			t.Error("a younger stream, or another operator's, was ended")
		default:
		}
	}
	s.left(t, Each+1, true)
}

// A listener that is gone is forgotten at the next write, and nothing goes on running for it.
func TestListenersThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, func(s *site) { s.beat = 50 * time.Millisecond })
	stays := s.watch(t, "topics=risk")
	for range 5 {
		w := s.watch(t, "topics=risk")
		w.Next(t)
		w.Cut()
	}
	s.left(t, 1, true)
	stays.Next(t)
	s.text.Store("something") // the frames of the other go on
	stays.Until(t, "something")
	stays.Cut()
	s.left(t, 0, false)
	if e := s.watch(t, "topics=risk").Next(t); !strings.Contains(e.Data, "something") {
		t.Errorf("after everyone had left: %+v", e)
	}
}

// Who has signed out, or may no longer see it, is cut at the next beat.
func TestWhoMayNoLongerWatchIsCut(t *testing.T) {
	t.Parallel()
	s := open(t, func(s *site) { s.beat = 50 * time.Millisecond })
	w := s.watch(t, "topics=risk")
	beat := w.Next(t)
	for beat.Name != "alive" {
		beat = w.Next(t)
	}
	if !strings.Contains(beat.Data, `id="live-at"`) {
		t.Errorf("a beat does not say when it was: %+v", beat)
	}
	s.refuses.Store(true)
	w.Over(t)
	s.left(t, 0, false)
}

func TestNobodyIsAddedBeyondTheLimit(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	listen := func(operator int64) bool {
		return s.join(&listener{Watch: Watch{Operator: operator}, frames: make(chan []byte, 1), replaced: make(chan struct{})})
	}
	for i := range int64(maxLive) {
		if !listen(i / Each) {
			t.Fatalf("listener %d was refused", i)
		}
	}
	if listen(maxLive) {
		t.Error("one more than a node keeps current")
	}
	if w := s.watch(t, fmt.Sprintf("operator=%d", maxLive)); w.Status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", w.Status)
	}
	if !listen(1) { // in the place of their own oldest
		t.Error("an operator with as many as they may have is refused")
	}
}

// Each thing that panels are of costs its own queries; who watches the same costs none.
func TestTheThingsThatAreWatchedAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	watch := func(operator int, of string) bool {
		return s.join(&listener{
			Watch:  Watch{Operator: int64(operator), View: View{Of: of}},
			frames: make(chan []byte, 1), replaced: make(chan struct{}),
		})
	}
	for i := range maxOf {
		if !watch(i, fmt.Sprint("order ", i)) {
			t.Fatalf("order %d was refused", i)
		}
	}
	if watch(maxOf, "one more") {
		t.Error("one more than a node keeps panels of")
	}
	if !watch(maxOf, "order 7") {
		t.Error("what others watch is refused")
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	w := s.watch(t, "topics=risk")
	w.Next(t)
	s.Close()
	w.Over(t)
	if w := s.watch(t, "topics=risk"); w.Status != http.StatusTooManyRequests {
		t.Errorf("after the end: %d", w.Status)
	}
}

// Consoles come and go while figures change and the server ends.
func TestConsolesComeAndGo(t *testing.T) {
	t.Parallel()
	s := open(t, func(s *site) { s.every, s.beat = 5*time.Millisecond, 10*time.Millisecond })
	var wg sync.WaitGroup
	for operator := range 4 {
		wg.Go(func() {
			for i := range 15 {
				s.text.Store(fmt.Sprint(operator, i))
				s.Forget("risk")
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				url := fmt.Sprintf("http://%s/?operator=%d&lang=%d", s.addr, operator, i%2)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
				}
				transport := &http.Transport{}
				res, err := transport.RoundTrip(req)
				if err != nil {
					t.Error(err)
				} else {
					_, _ = io.ReadFull(res.Body, make([]byte, 100))
					res.Body.Close()
				}
				cancel()
				transport.CloseIdleConnections()
			}
		})
	}
	stays := s.watch(t, "operator=9")
	stays.Next(t)
	wg.Wait()
	s.left(t, 1, true)
	s.Close()
	stays.Over(t)
}

func TestACacheKeepsErrorsAsLongAsValues(t *testing.T) {
	t.Parallel()
	var c Cache[int, string]
	var reads int
	read := func(context.Context) (string, error) { reads++; return "", errors.New("no database") }
	for range 3 {
		if _, _, err := c.Get(1, time.Hour, read); err == nil {
			t.Error("the error was lost")
		}
	}
	if reads != 1 {
		t.Errorf("%d queries", reads)
	}
	for i := range maxKept + 10 {
		_, _, _ = c.Get(i+2, time.Hour, read)
	}
	if n := len(c.kept); n > maxKept {
		t.Errorf("%d values are kept", n)
	}
}
