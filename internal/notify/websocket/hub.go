// Package websocket tells merchants who keep a connection open to us, and so need
// no address of their own. A frame is the frozen body, byte for byte; the merchant
// answers {"ack":"ntf_…"} once it has stored it, or {"nack":"ntf_…"} to be told
// again later. An attempt lasts until that answer, or its timeout.
//
// A merchant's connections are those of one node. No other node takes its rows for
// a minute (see notify.Linked): the one with the connection finds them within a
// second by the tick, and in the same way the pings that people ask for elsewhere.
// Nothing has to be passed from node to node.
package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"backstop/internal/notify"
	"backstop/internal/notify/outcome"

	ws "github.com/fasthttp/websocket"
)

// Target is the address of every merchant that connects to us.
const Target = "websocket:"

const (
	// maxEach lets a merchant run several instances, and change them one by one.
	maxEach = 8
	// maxAll bounds the node's connections: each costs about 20 KiB.
	maxAll = 5000
)

// ErrTarget says what is wrong with an address.
var ErrTarget = errors.New("bad websocket address")

// CheckTarget says what is wrong with an address, nil if it is Target.
func CheckTarget(raw string) error {
	if raw != Target {
		return fmt.Errorf("%w: must be %s (the merchant connects to us)", ErrTarget, Target)
	}
	return nil
}

// Hub knows which merchants are connected to this node. It is safe for concurrent
// use.
type Hub struct {
	// OnConnect hears of each new connection, on a goroutine of its own: what waits
	// for the merchant can be released. Set it before the first Serve; optional.
	OnConnect func(merchantID int64)

	pingEvery time.Duration

	mu        sync.Mutex
	merchants map[int64]*merchant
	open      int
	closed    bool
	running   sync.WaitGroup
}

// merchant is who is connected, and who waits for its answers. An answer may come
// by any of its connections.
type merchant struct {
	links   []*link
	turn    int
	waiting map[string][]chan answer
}

// answer is what a merchant said to one message.
type answer struct {
	taken bool
	raw   []byte
}

var (
	_ notify.Channel = (*Hub)(nil)
	_ notify.Linked  = (*Hub)(nil)
)

// New returns a Hub without connections.
func New() *Hub { return &Hub{pingEvery: pingEvery, merchants: map[int64]*merchant{}} }

// Linked says whether a merchant has a connection to this node.
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

// Send hands the message to one of the merchant's connections, in turn, and waits
// for its answer.
func (h *Hub) Send(parent context.Context, m notify.Message) notify.Result {
	start := time.Now()
	result := h.attempt(parent, m)
	result.Took = time.Since(start)
	return result
}

func (h *Hub) attempt(parent context.Context, m notify.Message) notify.Result {
	if problem := outcome.Unsendable(m); problem != "" {
		return notify.Result{Class: notify.Internal, Error: problem}
	}
	if err := CheckTarget(m.URL); err != nil {
		return notify.Result{Class: notify.BadAddress, Error: err.Error()}
	}
	ctx, cancel := context.WithTimeout(parent, m.Timeout)
	defer cancel()
	if parent.Err() != nil {
		class, text := outcome.Of(parent, ctx, false, parent.Err())
		return notify.Result{Class: class, Error: text}
	}
	l, answers, done := h.await(m.To.ID, m.ID)
	if l == nil {
		return notify.Result{Class: notify.NotConnected, Error: "the merchant is not connected to this node"}
	}
	defer done()
	result := notify.Result{RemoteAddr: l.remote}
	// The writer may come to it after the attempt is over.
	said, err := l.tell(ctx, bytes.Clone(m.Body), answers)
	switch {
	case errors.Is(err, errGone):
		result.Class, result.Error = notify.Broken, "the connection ended before the answer"
	case err != nil:
		result.Class, result.Error = outcome.Of(parent, ctx, true, err)
	case !said.taken:
		result.Class, result.Error, result.ResponseBody = notify.Refused, "the merchant answered nack", said.raw
	default:
		result.Class, result.ResponseBody = notify.OK, said.raw
	}
	return result
}

// await picks a connection and opens an ear for the answer to id.
func (h *Hub) await(merchantID int64, id string) (*link, chan answer, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchantID]
	if m == nil || len(m.links) == 0 {
		return nil, nil, nil
	}
	m.turn++
	ear := make(chan answer, 1)
	m.waiting[id] = append(m.waiting[id], ear)
	return m.links[m.turn%len(m.links)], ear, func() { h.forget(merchantID, m, id, ear) }
}

func (h *Hub) forget(merchantID int64, m *merchant, id string, ear chan answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []chan answer
	for _, other := range m.waiting[id] {
		if other != ear {
			rest = append(rest, other)
		}
	}
	if len(rest) > 0 {
		m.waiting[id] = rest
		return
	}
	delete(m.waiting, id)
	h.drop(merchantID, m)
}

// drop forgets a merchant who is gone and for whom nobody waits. Called with h.mu
// held.
func (h *Hub) drop(merchantID int64, m *merchant) {
	if len(m.links) == 0 && len(m.waiting) == 0 && h.merchants[merchantID] == m {
		delete(h.merchants, merchantID)
	}
}

// heard passes an answer to whoever waits for it. One that comes too late has
// nobody who waits: the repeat will be answered again.
func (h *Hub) heard(merchantID int64, id string, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchantID]
	if m == nil {
		return
	}
	for _, ear := range m.waiting[id] {
		select {
		case ear <- a:
		default: // it has its answer
		}
	}
}

// Serve runs one connection until it ends. allowed is asked now and then whether
// the key that opened it still holds.
func (h *Hub) Serve(merchantID int64, conn *ws.Conn, allowed func() bool) {
	l := newLink(h, merchantID, conn, allowed)
	if code, reason := h.enter(l); reason != "" {
		l.sayGoodbye(code, reason)
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
	for i, other := range m.links {
		if other == l {
			m.links = append(m.links[:i:i], m.links[i+1:]...)
			break
		}
	}
	h.open--
	h.drop(l.merchant, m)
}

// Close says good-bye to all and waits until they are gone. Who does not go, or
// does not read, is cut off.
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
	late := time.AfterFunc(goodbyeTime, func() {
		for _, l := range links {
			l.cut()
		}
	})
	defer late.Stop()
	h.running.Wait()
	return nil
}
