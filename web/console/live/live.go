// Package live keeps open consoles current: once a second it renders what has changed, once for
// all who see the same, and sends it to them as server-sent events. It knows neither pages nor
// sessions.
package live

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// Limits of the live updates.
const (
	// maxLive is how many consoles one node keeps current.
	maxLive = 500
	// Each is how many of them one operator may have open. The next one takes the place of the
	// oldest: a page that was left is noticed only when a beat cannot be written to it.
	Each = 20
	// maxOf is of how many things, such as orders, one node keeps panels: each costs its own queries.
	maxOf = 200
	// Every is the minimum interval between two frames of one console.
	Every = time.Second
	// beat is how often an empty event is sent; proxies close connections that are idle for a
	// minute.
	beat = 15 * time.Second
	// writeTime is how long a console may take to accept a frame.
	writeTime = 10 * time.Second
)

// ErrFull is returned when the node keeps as many consoles current as it may, or panels of as many
// things.
var ErrFull = errors.New("too many consoles are open")

// Drawing is a panel with its figures, which can be rendered in any language and time zone. P is
// what a page is rendered with.
type Drawing[P any] func(p P) templ.Component

// Topic is one panel. The name of one that a path serves alone is the panel's id and the last part of
// that path.
type Topic[P any] struct {
	Name   string
	Every  time.Duration // maximum age of its figures
	Ranged bool          // whether they depend on View.Of
	// Asked marks a panel that only those get who name it.
	Asked bool
	// Own marks a panel of the operator: View.Of is the operator's id, and it does not depend on
	// the roles.
	Own bool
	// Read reads the figures of what View.Of names.
	Read func(ctx context.Context, of string) (Drawing[P], error)
}

// View is what a drawing depends on; one drawing serves all consoles with the same view. Of is
// what the panels are of, such as a range of time or a batch.
type View struct {
	Language, Zone, Of string
	Roles              access.Roles
	// Operator is set if the drawing depends on who sees it.
	Operator int64
}

// Options are what a Stream works with.
type Options[P any] struct {
	Topics []Topic[P]
	Page   func(View) P
	// At shows when the oldest of the figures was read.
	At  func(p P, at time.Time) templ.Component
	Log *slog.Logger
}

// Watch is one console that is kept current.
type Watch struct {
	View
	Topics   []string // names; empty = all, but those that are only for who names them
	Operator int64
	Seen     string // the id of its last frame, from this run or another
	// Allowed is asked at each beat: what it refuses ends.
	Allowed func() bool
}

// listener is one open console. Frames replace each other: a slow listener misses older frames,
// never the newest.
type listener struct {
	Watch
	sent     int64 // number of the last frame sent
	last     time.Time
	frames   chan []byte // buffers one frame
	number   int64       // increases with every stream
	replaced chan struct{}
}

// viewOf returns what the listener's drawings of a topic depend on.
func viewOf[P any](l *listener, t Topic[P]) View {
	if t.Own {
		return View{Language: l.Language, Zone: l.Zone, Operator: l.Operator, Of: strconv.FormatInt(l.Operator, 10)}
	}
	return l.View
}

func wants[P any](l *listener, t Topic[P]) bool {
	return len(l.Topics) == 0 && !t.Asked || slices.Contains(l.Topics, t.Name)
}

type figuresKey struct{ topic, of string }

// panelKey is one panel in one view.
type panelKey struct {
	View
	topic string
}

// drawn is a panel as last rendered.
type drawn struct {
	number int64 // increases with every change
	at     time.Time
	html   []byte
}

// Stream renders what has changed, once a second, for all listeners.
type Stream[P any] struct {
	Options[P]
	figures     Cache[figuresKey, Drawing[P]]
	boot        string // identifies this run in frame ids
	every, beat time.Duration

	mu        sync.Mutex
	listeners map[*listener]bool
	streams   int64 // opened so far
	running   bool
	closed    bool
	stop      chan struct{}
	joined    chan struct{}

	// Used only by the loop.
	number int64
	panels map[panelKey]drawn
}

// New returns a stream that ends with Close.
func New[P any](o Options[P]) *Stream[P] {
	return &Stream[P]{
		Options: o, boot: rand.Text()[:8], every: Every, beat: beat, listeners: map[*listener]bool{},
		stop: make(chan struct{}), joined: make(chan struct{}, 1), panels: map[panelKey]drawn{},
	}
}

// Get returns a topic's drawing, and when its figures were read: one query serves all consoles,
// however many there are.
func (s *Stream[P]) Get(t Topic[P], of string) (Drawing[P], time.Time, error) {
	key := figuresKey{topic: t.Name}
	if t.Ranged {
		key.of = of
	}
	return s.figures.Get(key, t.Every, func(ctx context.Context) (Drawing[P], error) { return t.Read(ctx, of) })
}

// Forget makes the next reader of a topic that is not ranged see what has just been changed.
func (s *Stream[P]) Forget(topic string) { s.figures.Forget(figuresKey{topic: topic}) }

// join adds a listener, if need be in the place of the operator's oldest; false = there are too
// many of all.
func (s *Stream[P]) join(li *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, of := 0, map[string]bool{li.Of: true}
	var oldest *listener
	for other := range s.listeners {
		of[other.Of] = true
		if other.Operator != li.Operator {
			continue
		}
		if mine++; oldest == nil || other.number < oldest.number {
			oldest = other
		}
	}
	if s.closed || len(of) > maxOf || len(s.listeners) >= maxLive && mine < Each {
		return false
	}
	if mine >= Each {
		delete(s.listeners, oldest)
		close(oldest.replaced)
	}
	s.streams++
	li.number = s.streams
	if boot, number, ok := strings.Cut(li.Seen, "-"); ok && boot == s.boot {
		li.sent, _ = strconv.ParseInt(number, 10, 64)
	}
	s.listeners[li] = true
	if !s.running {
		s.running = true
		go s.run()
	}
	select {
	case s.joined <- struct{}{}: // its first frame comes at once
	default:
	}
	return true
}

func (s *Stream[P]) leave(li *listener) {
	s.mu.Lock()
	delete(s.listeners, li)
	s.mu.Unlock()
}

// Close ends all streams, because a shutdown must not wait for them.
func (s *Stream[P]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
}

// run ends when the last listener has left.
func (s *Stream[P]) run() {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		case <-s.joined:
		}
		s.mu.Lock()
		all := make([]*listener, 0, len(s.listeners))
		for li := range s.listeners {
			all = append(all, li)
		}
		s.running = len(all) > 0
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		s.round(all)
	}
}

// round renders the wanted panels that have changed, and sends them.
func (s *Stream[P]) round(all []*listener) {
	wanted := map[panelKey]Topic[P]{}
	for _, li := range all {
		for _, t := range s.Topics {
			if wants(li, t) {
				wanted[panelKey{viewOf(li, t), t.Name}] = t
			}
		}
	}
	for key := range s.panels {
		if _, ok := wanted[key]; !ok {
			delete(s.panels, key)
		}
	}
	for key, t := range wanted {
		if err := s.draw(key, t); err != nil {
			s.Log.Warn("render a live panel", "panel", t.Name, "error", db.ErrorText(err))
		}
	}
	for _, li := range all {
		s.push(li)
	}
}

func (s *Stream[P]) draw(key panelKey, t Topic[P]) error {
	draw, at, err := s.Get(t, key.Of)
	if err != nil || at.Equal(s.panels[key].at) {
		return err
	}
	var b bytes.Buffer
	if err := draw(s.Page(key.View)).Render(context.Background(), &b); err != nil {
		return err
	}
	before := s.panels[key]
	if bytes.Equal(before.html, b.Bytes()) {
		before.at = at
		s.panels[key] = before
		return nil
	}
	s.number++
	s.panels[key] = drawn{s.number, at, b.Bytes()}
	return nil
}

// push sends a listener the panels that it does not have yet; none while its last frame is
// unwritten.
func (s *Stream[P]) push(li *listener) {
	if time.Since(li.last) < s.every/2 {
		return // it has just received its first
	}
	var body bytes.Buffer
	newest, oldest := li.sent, time.Now()
	for _, t := range s.Topics {
		d, ok := s.panels[panelKey{viewOf(li, t), t.Name}]
		if !ok || !wants(li, t) {
			continue
		}
		if d.at.Before(oldest) {
			oldest = d.at
		}
		if d.number > li.sent {
			body.Write(d.html)
			newest = max(newest, d.number)
		}
	}
	if newest == li.sent {
		return
	}
	if s.At(s.Page(li.View), oldest).Render(context.Background(), &body) != nil {
		return
	}
	select {
	case li.frames <- event("panels", s.boot+"-"+strconv.FormatInt(newest, 10), body.Bytes()):
		li.sent, li.last = newest, time.Now()
	default: // the last frame is not written yet: the next round includes everything
	}
}

// event is a server-sent event; id is that of a frame, "" = it is none.
func event(name, id string, body []byte) []byte {
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\n", name)
	for line := range bytes.Lines(body) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// Serve answers with the frames of a console, or ErrFull.
func (s *Stream[P]) Serve(c *fiber.Ctx, w Watch) error {
	li := &listener{Watch: w, frames: make(chan []byte, 1), replaced: make(chan struct{})}
	if !s.join(li) {
		return ErrFull
	}
	c.Set(fiber.HeaderContentType, "text/event-stream; charset=utf-8")
	c.Set("X-Accel-Buffering", "no") // nginx would buffer frames
	conn := c.Context().Conn()
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.leave(li)
		s.write(w, conn, li)
	})
	return nil
}

// write writes frames until the console is closed, replaced or no longer allowed, or the server
// ends. The connection's own write deadline is meant for finite responses.
func (s *Stream[P]) write(w *bufio.Writer, conn net.Conn, li *listener) {
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	next := []byte("retry: 2000\n\n")
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTime + s.beat))
		if _, err := w.Write(next); err != nil {
			return
		}
		if err := w.Flush(); err != nil {
			return
		}
		select {
		case <-s.stop:
			return
		case <-li.replaced:
			_, _ = w.Write(event("replaced", "", []byte(".")))
			_ = w.Flush()
			return
		case next = <-li.frames:
		case <-beat.C:
			if !li.Allowed() {
				return
			}
			var at bytes.Buffer
			if s.At(s.Page(li.View), time.Now()).Render(context.Background(), &at) != nil {
				return
			}
			next = event("alive", "", at.Bytes())
		}
	}
}
