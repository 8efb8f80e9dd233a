// Package websocket notifies merchants over connections that they open to us, so that they need
// no URL. A frame is the frozen body, byte for byte; the merchant answers {"ack":"ntf_…"} once
// it has stored it, or {"nack":"ntf_…"} to be notified again later. An attempt lasts until that
// answer or its timeout.
//
// Other nodes leave a connected merchant's rows to its node for a minute (see notify.Linked),
// which reads them within a second by the tick, as it does pings created on other nodes.
// Nothing is sent between nodes.
package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"backstop/internal/notify"
	"backstop/internal/notify/outcome"

	ws "github.com/fasthttp/websocket"
)

// Target is the URL for every merchant that connects to us.
const Target = "websocket:"

const (
	// maxEach bounds the connections of one merchant: several instances during a rolling
	// update.
	maxEach = 8
	// maxAll bounds the connections of the node: each costs about 20 KiB.
	maxAll = 5000
)

// ErrTarget means a URL other than Target.
var ErrTarget = errors.New("bad websocket address")

// CheckTarget checks that a URL is Target.
func CheckTarget(raw string) error {
	if raw != Target {
		return fmt.Errorf("%w: must be %s (the merchant connects to us)", ErrTarget, Target)
	}
	return nil
}

// Hub holds the merchants' connections to this node. It is safe for concurrent use.
type Hub struct {
	// OnConnect is called for each new connection, on its own goroutine, so that waiting
	// notifications can be released. Optional; set it before the first Serve.
	OnConnect func(merchantID int64)

	pingEvery time.Duration

	mu        sync.Mutex
	merchants map[int64]*merchant
	open      int
	closed    bool
	running   sync.WaitGroup
}

// merchant holds a merchant's connections and the attempts waiting for its answers. An answer
// may come over any of the connections.
type merchant struct {
	links   []*link
	turn    int
	waiting map[string][]chan answer
}

// answer is a merchant's answer to one message.
type answer struct {
	ack bool
	raw []byte
}

var (
	_ notify.Channel = (*Hub)(nil)
	_ notify.Linked  = (*Hub)(nil)
)

// New returns a Hub without connections.
func New() *Hub { return &Hub{pingEvery: pingEvery, merchants: map[int64]*merchant{}} }

// Linked reports whether a merchant has a connection to this node.
func (h *Hub) Linked(merchantID int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchantID]
	return m != nil && len(m.links) > 0
}

// Connected lists the merchants with a connection to this node.
func (h *Hub) Connected() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]int64, 0, len(h.merchants))
	for id, m := range h.merchants {
		if len(m.links) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Send sends the message over one of the merchant's connections, in turn, and waits for the
// answer.
func (h *Hub) Send(ctx context.Context, m notify.Message) notify.Result {
	return outcome.Send(ctx, m, nil, func(ctx context.Context) notify.Result { return h.attempt(ctx, m) })
}

func (h *Hub) attempt(ctx context.Context, m notify.Message) notify.Result {
	if err := CheckTarget(m.URL); err != nil {
		return outcome.Unusable(err)
	}
	l, answers, done := h.await(m.To.ID, m.ID)
	if l == nil {
		return notify.Result{Class: notify.NotConnected, Error: "the merchant is not connected to this node"}
	}
	defer done()
	result := notify.Result{RemoteAddr: l.remote}
	// The writer may read the body after the attempt has ended.
	a, err := l.send(ctx, bytes.Clone(m.Body), answers)
	switch {
	case errors.Is(err, errGone):
		result.Class, result.Error = notify.Broken, "the connection ended before the answer"
	case err != nil:
		result.Class, result.Error = outcome.Of(ctx, true, err)
	case !a.ack:
		result.Class, result.Error, result.ResponseBody = notify.Refused, "the merchant answered nack", a.raw
	default:
		result.Class, result.ResponseBody = notify.OK, a.raw
	}
	return result
}

// await picks a connection and registers for the answer to id; done unregisters.
func (h *Hub) await(merchantID int64, id string) (l *link, answers chan answer, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchantID]
	if m == nil || len(m.links) == 0 {
		return nil, nil, nil
	}
	m.turn++
	answers = make(chan answer, 1)
	m.waiting[id] = append(m.waiting[id], answers)
	return m.links[m.turn%len(m.links)], answers, func() { h.forget(merchantID, m, id, answers) }
}

func (h *Hub) forget(merchantID int64, m *merchant, id string, answers chan answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.waiting[id] = slices.DeleteFunc(m.waiting[id], func(other chan answer) bool { return other == answers })
	if len(m.waiting[id]) == 0 {
		delete(m.waiting, id)
		h.drop(merchantID, m)
	}
}

// drop removes a merchant without connections and attempts. Called with h.mu held.
func (h *Hub) drop(merchantID int64, m *merchant) {
	if len(m.links) == 0 && len(m.waiting) == 0 && h.merchants[merchantID] == m {
		delete(h.merchants, merchantID)
	}
}

// deliver passes an answer to the attempts waiting for it; none, if it is too late.
func (h *Hub) deliver(merchantID int64, id string, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchantID]
	if m == nil {
		return
	}
	for _, answers := range m.waiting[id] {
		select {
		case answers <- a:
		default: // it already has one
		}
	}
}

// Serve runs one connection until it ends. allowed is called periodically; it reports whether
// the API key of the connection is still valid.
func (h *Hub) Serve(merchantID int64, conn *ws.Conn, allowed func() bool) {
	l := newLink(h, merchantID, conn, allowed)
	if code, reason := h.enter(l); reason != "" {
		l.sendClose(code, reason)
		return
	}
	defer h.running.Done()
	if h.OnConnect != nil {
		h.running.Go(func() { h.OnConnect(merchantID) })
	}
	l.run()
	h.leave(l)
}

func (h *Hub) enter(l *link) (code int, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[l.merchant]
	switch {
	case h.closed:
		return ws.CloseGoingAway, "this node is stopping"
	case h.open >= maxAll:
		return ws.CloseTryAgainLater, "this node has too many connections"
	case m != nil && len(m.links) >= maxEach:
		return ws.CloseTryAgainLater, fmt.Sprintf("at most %d connections for one merchant", maxEach)
	case m == nil:
		m = &merchant{waiting: map[string][]chan answer{}}
		h.merchants[l.merchant] = m
	}
	m.links = append(m.links, l)
	h.open++
	h.running.Add(1)
	return 0, ""
}

func (h *Hub) leave(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[l.merchant]
	m.links = slices.DeleteFunc(m.links, func(other *link) bool { return other == l })
	h.open--
	h.drop(l.merchant, m)
}

// Close closes all connections and waits until they have ended. Those whose other side does not
// answer the close, or does not read, are cut off.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	var links []*link
	for _, m := range h.merchants {
		links = append(links, m.links...)
	}
	h.mu.Unlock()
	for _, l := range links {
		l.end(ws.CloseGoingAway, "this node is stopping")
	}
	late := time.AfterFunc(closeTime, func() {
		for _, l := range links {
			l.cut()
		}
	})
	defer late.Stop()
	h.running.Wait()
	return nil
}
