package console

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/bulk"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// Limits of the live updates.
const (
	// maxLive is how many consoles one node keeps current.
	maxLive = 500
	// liveEach is how many of them one operator may have open. The next one takes the place of
	// the oldest: a page that was left is noticed only when a beat cannot be written to it.
	liveEach = 20
	// liveEvery is the minimum interval between two frames of one console.
	liveEvery = time.Second
	// liveBeat is how often an empty event is sent; proxies close connections that are idle for
	// a minute.
	liveBeat = 15 * time.Second
	// liveWrite is how long a console may take to accept a frame.
	liveWrite = 10 * time.Second
)

// view is what a drawing depends on; one drawing serves all consoles with the same view. of is
// the range of the overview, the batch whose page is open, or the filter of what needs an
// operator.
type view struct {
	language, zone, role, of string
	// operator is set if the role approves proposals, because nobody approves their own.
	operator int64
}

// listener is one open console. Frames replace each other: a slow listener misses older frames,
// never the newest.
type listener struct {
	view
	topics   []string // names; empty = all
	operator int64
	sent     int64 // number of the last frame sent
	last     time.Time
	frames   chan []byte // buffers one frame
	number   int64       // increases with every stream
	replaced chan struct{}
}

// viewOf returns what the listener's drawings of a topic depend on.
func (l *listener) viewOf(t topic) view {
	if t.name == bellTopic {
		return view{language: l.language, zone: l.zone, operator: l.operator, of: strconv.FormatInt(l.operator, 10)}
	}
	return l.view
}

func (l *listener) wants(name string) bool {
	return len(l.topics) == 0 && name != batchTopic && name != attentionTopic || slices.Contains(l.topics, name)
}

// panelKey is one panel in one view.
type panelKey struct {
	view
	topic string
}

// drawn is a panel as last rendered.
type drawn struct {
	number int64 // increases with every change
	at     time.Time
	html   []byte
}

// live renders what has changed, once a second, for all listeners.
type live struct {
	s *web.Server
	board
	boot string // identifies this run in frame ids

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

// newLive keeps open consoles current until the server ends.
func newLive(s *web.Server, topics []topic) *live {
	l := &live{
		s: s, board: board{topics: topics}, boot: rand.Text()[:8], listeners: map[*listener]bool{},
		stop: make(chan struct{}), joined: make(chan struct{}, 1), panels: map[panelKey]drawn{},
	}
	s.AtShutdown(l.close)
	return l
}

// join adds a listener, if need be in the place of the operator's oldest; false = there are too
// many of all. seen is the id of its last frame, from this run or another.
func (l *live) join(li *listener, seen string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := 0
	var oldest *listener
	for other := range l.listeners {
		if other.operator != li.operator {
			continue
		}
		if mine++; oldest == nil || other.number < oldest.number {
			oldest = other
		}
	}
	if l.closed || len(l.listeners) >= maxLive && mine < liveEach {
		return false
	}
	if mine >= liveEach {
		delete(l.listeners, oldest)
		close(oldest.replaced)
	}
	l.streams++
	li.number = l.streams
	if boot, number, ok := strings.Cut(seen, "-"); ok && boot == l.boot {
		li.sent, _ = strconv.ParseInt(number, 10, 64)
	}
	l.listeners[li] = true
	if !l.running {
		l.running = true
		go l.run()
	}
	select {
	case l.joined <- struct{}{}: // its first frame comes at once
	default:
	}
	return true
}

func (l *live) leave(li *listener) {
	l.mu.Lock()
	delete(l.listeners, li)
	l.mu.Unlock()
}

// close ends all streams, because a shutdown must not wait for them.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
}

// run ends when the last listener has left.
func (l *live) run() {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		case <-l.joined:
		}
		l.mu.Lock()
		all := make([]*listener, 0, len(l.listeners))
		for li := range l.listeners {
			all = append(all, li)
		}
		l.running = len(all) > 0
		l.mu.Unlock()
		if len(all) == 0 {
			return
		}
		l.round(all)
	}
}

// round renders the wanted panels that have changed, and sends them.
func (l *live) round(all []*listener) {
	wanted := map[panelKey]topic{}
	for _, li := range all {
		for _, t := range l.topics {
			if li.wants(t.name) {
				wanted[panelKey{li.viewOf(t), t.name}] = t
			}
		}
	}
	for key := range l.panels {
		if _, ok := wanted[key]; !ok {
			delete(l.panels, key)
		}
	}
	for key, t := range wanted {
		if err := l.draw(key, t); err != nil {
			l.s.Log.Warn("render a live panel", "panel", t.name, "error", db.ErrorText(err))
		}
	}
	for _, li := range all {
		l.push(li)
	}
}

func (l *live) draw(key panelKey, t topic) error {
	draw, at, err := l.get(t, key.of)
	if err != nil || at.Equal(l.panels[key].at) {
		return err
	}
	var b bytes.Buffer
	if err := draw(l.page(key.view)).Render(context.Background(), &b); err != nil {
		return err
	}
	before := l.panels[key]
	if bytes.Equal(before.html, b.Bytes()) {
		before.at = at
		l.panels[key] = before
		return nil
	}
	l.number++
	l.panels[key] = drawn{l.number, at, b.Bytes()}
	return nil
}

// page returns what a panel depends on besides its figures.
func (l *live) page(a view) *ui.Page {
	zone, err := time.LoadLocation(a.zone)
	if err != nil {
		zone = time.UTC
	}
	return &ui.Page{
		Language: a.language, Zone: zone, Role: a.role, UserID: a.operator, Now: l.s.DB.NowTime(), Texts: l.s.Texts,
		File: l.s.Files.URL,
	}
}

// push sends a listener the panels that it does not have yet; none while its last frame is
// unwritten.
func (l *live) push(li *listener) {
	if time.Since(li.last) < liveEvery/2 {
		return // it has just received its first
	}
	var body bytes.Buffer
	newest, oldest := li.sent, time.Now()
	for _, t := range l.topics {
		d, ok := l.panels[panelKey{li.viewOf(t), t.name}]
		if !ok || !li.wants(t.name) {
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
	if ui.LiveTime(l.page(li.view), oldest).Render(context.Background(), &body) != nil {
		return
	}
	select {
	case li.frames <- frame(l.boot+"-"+strconv.FormatInt(newest, 10), body.Bytes()):
		li.sent, li.last = newest, time.Now()
	default: // the last frame is not written yet: the next round includes everything
	}
}

// frame is a server-sent event.
func frame(id string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nevent: panels\n", id)
	for line := range bytes.Lines(body) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// stream keeps a console current by server-sent events. Requests other than from an event
// source are redirected to the page.
func (l *live) stream(c *fiber.Ctx) error {
	r, batch := console.RangeOf(c.Query("range")), c.Query("batch")
	if !strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream") {
		return c.Redirect("/?range="+r.Name, fiber.StatusSeeOther)
	}
	p, op := l.s.Page(c), web.Operator(c)
	li := &listener{
		view: view{language: p.Language, zone: p.Zone.String(), role: op.Role, of: r.Name}, operator: op.ID, frames: make(chan []byte, 1),
		replaced: make(chan struct{}),
	}
	if l.s.Policy.Allows(op.Role, access.ApproveMoney) {
		li.view.operator = op.ID
	}
	if names := c.Query("topics"); names != "" {
		li.topics = slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == batchTopic })
	}
	if _, ok := bulk.ParseNo(batch); ok {
		li.of, li.topics = batch, []string{batchTopic, bellTopic}
	} else if slices.Contains(li.topics, attentionTopic) {
		f, err := readAttention(c)
		if err != nil {
			return err
		}
		li.of, li.topics = attentionOf(f), []string{attentionTopic, bellTopic}
	}
	seen := c.Get("Last-Event-ID")
	if seen == "" {
		seen = c.Query("seen") // a new event source cannot set the header
	}
	if !l.join(li, seen) {
		return web.ErrTooMany
	}
	c.Set(fiber.HeaderContentType, "text/event-stream; charset=utf-8")
	c.Set("X-Accel-Buffering", "no") // nginx would buffer frames
	conn, token, role := c.Context().Conn(), c.Cookies(l.s.CookieName()), op.Role
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer l.leave(li)
		l.write(w, conn, li, func() bool { return l.isAllowed(token, role) })
	})
	return nil
}

// isAllowed reports whether the session is still open and its operator has the same role.
func (l *live) isAllowed(token, role string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	op, err := l.s.Sessions.Peek(ctx, token)
	return err == nil && op.Role == role && !op.MustChange && l.s.Policy.Allows(op.Role, access.ViewOverview)
}

// write writes frames until the console is closed, replaced or signed out, or the server ends. The
// connection's own write deadline is meant for finite responses.
func (l *live) write(w *bufio.Writer, conn net.Conn, li *listener, allowed func() bool) {
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	next := []byte("retry: 2000\n\n")
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(liveWrite + liveBeat))
		if _, err := w.Write(next); err != nil {
			return
		}
		if err := w.Flush(); err != nil {
			return
		}
		select {
		case <-l.stop:
			return
		case <-li.replaced:
			_, _ = w.WriteString("event: replaced\ndata: .\n\n")
			_ = w.Flush()
			return
		case next = <-li.frames:
		case <-beat.C:
			if !allowed() {
				return
			}
			next = []byte("event: alive\ndata: .\n\n")
		}
	}
}
