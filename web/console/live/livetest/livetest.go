// Package livetest is a browser's event source for tests.
package livetest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// maxWait is long, since it is reached only where something is wrong or the machine is busy.
const maxWait = time.Minute

// Event is one server-sent event.
type Event struct{ ID, Name, Data string }

// Source is a browser's event source.
type Source struct {
	Status int
	End    chan struct{} // closed when the stream is over
	Cut    func()
	events chan Event
}

// Open asks a URL for its stream; header holds alternating names and values.
func Open(t testing.TB, url string, header ...string) *Source {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{} // a connection of its own: cutting it must cut no other
	res, err := transport.RoundTrip(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &Source{Status: res.StatusCode, events: make(chan Event, 100), End: make(chan struct{}), Cut: cancel}
	t.Cleanup(cancel)
	go func() {
		defer close(s.End)
		defer transport.CloseIdleConnections()
		defer res.Body.Close()
		s.read(ctx, res.Body)
	}()
	return s
}

func (s *Source) read(ctx context.Context, body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	var e Event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			e.Data += value + "\n"
		case "":
			if e.Name != "" {
				select {
				case s.events <- e:
				case <-ctx.Done():
					return
				}
			}
			e = Event{}
		}
	}
}

// Next waits for an event.
func (s *Source) Next(t testing.TB) Event {
	t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-s.End:
		select {
		case e := <-s.events: // came before the end
			return e
		default:
		}
		t.Fatal("the stream has ended")
	case <-time.After(maxWait):
		t.Fatalf("no event within %s", maxWait)
	}
	return Event{}
}

// Until waits for an event that contains a text.
func (s *Source) Until(t testing.TB, text string) Event {
	t.Helper()
	for range 50 {
		if e := s.Next(t); strings.Contains(e.Data, text) {
			return e
		}
	}
	t.Fatalf("50 events without %q", text)
	return Event{}
}

// Over waits for the end of the stream and discards the events before it: unread ones would block
// the reader.
func (s *Source) Over(t testing.TB) {
	t.Helper()
	deadline := time.After(maxWait)
	for {
		select {
		case <-s.events:
		case <-s.End:
			return
		case <-deadline:
			t.Fatalf("the stream is open after %s", maxWait)
		}
	}
}
