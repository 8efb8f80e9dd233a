package websocket

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/notify/channeltest"
	"backstop/internal/recipient"
)

// fasthttp starts a clock for the header Date, once, and never stops it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// host is a hub behind a real server. The path names the merchant.
type host struct {
	*Hub
	t       testing.TB
	addr    string
	allowed atomic.Bool
}

func newHost(t testing.TB) *host {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{Hub: New(), t: t, addr: l.Addr().String()}
	h.allowed.Store(true)
	upgrader := ws.FastHTTPUpgrader{}
	// As the door does it: this server closes a connection only after its handler. The
	// settings behind its time-out leave as few goroutines of its own as can be.
	server := &fasthttp.Server{
		ReadTimeout: 5 * time.Second, MaxIdleWorkerDuration: 10 * time.Millisecond, NoDefaultDate: true,
		Handler: func(c *fasthttp.RequestCtx) {
			id, _ := strconv.ParseInt(strings.TrimPrefix(string(c.Path()), "/"), 10, 64)
			_ = upgrader.Upgrade(c, func(conn *ws.Conn) { h.Serve(id, conn, h.allowed.Load) })
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = h.Close()
		_ = l.Close()
		<-served
	})
	return h
}

// client is a merchant's connection.
type client struct {
	*ws.Conn
	t    testing.TB
	done chan error
}

// connect opens a connection that does with each frame what the merchant does.
func (h *host) connect(merchantID int64, each func(c *client, id string, body []byte)) *client {
	h.t.Helper()
	before := h.links(merchantID)
	conn, _, err := ws.DefaultDialer.Dial("ws://"+h.addr+"/"+strconv.FormatInt(merchantID, 10), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &client{conn, h.t, make(chan error, 1)}
	go func() {
		for {
			_, body, err := conn.ReadMessage()
			if err != nil {
				c.done <- err
				return
			}
			var frame struct{ ID string }
			_ = json.Unmarshal(body, &frame)
			each(c, frame.ID, body)
		}
	}()
	h.t.Cleanup(func() { _ = conn.Close() })
	known := func() bool { // an earlier one may go meanwhile: their number says nothing
		return slices.ContainsFunc(h.links(merchantID), func(l *link) bool { return !slices.Contains(before, l) })
	}
	waittest.Until(h.t, "the hub has it", func() bool { return known() || len(c.done) > 0 })
	return c
}

func (h *host) count(merchantID int64) int { return len(h.links(merchantID)) }

func (h *host) links(merchantID int64) []*link {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.merchants[merchantID]; m != nil {
		return slices.Clone(m.links)
	}
	return nil
}

func (c *client) say(text string) { _ = c.WriteMessage(ws.TextMessage, []byte(text)) }

// closedWith is the code with which the server ended the connection.
func (c *client) closedWith() int {
	c.t.Helper()
	select {
	case err := <-c.done:
		var closed *ws.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		return 0
	case <-time.After(time.Minute):
		c.t.Fatal("the connection is still open")
		return 0
	}
}

func ack(c *client, id string, _ []byte)  { c.say(`{"ack":"` + id + `"}`) }
func nack(c *client, id string, _ []byte) { c.say(`{"nack":"` + id + `"}`) }
func nothing(*client, string, []byte)     {}

func message(merchantID int64) notify.Message {
	return notify.Message{
		ID: "ntf_0198c2", Type: "order.paid", URL: Target, To: recipient.OfMerchant(merchantID), At: time.Now(), Timeout: 5 * time.Second,
		Body: []byte(`{"id":"ntf_0198c2", "type":"order.paid","data":{"order_no":"20260101"}}`),
	}
}

func TestConformance(t *testing.T) {
	hosts := map[*testing.T]*host{}
	hostOf := func(t *testing.T) *host {
		if hosts[t] == nil {
			hosts[t] = newHost(t)
		}
		return hosts[t]
	}
	merchants := map[channeltest.Condition]int64{
		channeltest.Taking: 1, channeltest.Failing: 2, channeltest.Rejecting: 3, channeltest.Refusing: 4, channeltest.Stalling: 5,
	}
	behaviours := map[channeltest.Condition]func(*client, string, []byte){
		channeltest.Taking: ack, channeltest.Failing: nack, channeltest.Stalling: nothing,
		channeltest.Rejecting: func(c *client, _ string, _ []byte) { _ = c.Close() },
	}
	channeltest.Run(t, channeltest.Suite{
		New: func(t *testing.T) notify.Channel { return hostOf(t) },
		Peer: func(t *testing.T, c channeltest.Condition) string {
			h := hostOf(t)
			if each := behaviours[c]; each != nil {
				h.connect(merchants[c], each)
			}
			if c == channeltest.Impossible {
				return "https://a.example/"
			}
			return string(c)
		},
		Prepare: func(m *notify.Message) {
			if id := merchants[channeltest.Condition(m.URL)]; id != 0 {
				m.To, m.URL = recipient.OfMerchant(id), Target
			}
		},
		Wants: map[channeltest.Condition]notify.Class{
			channeltest.Failing: notify.Refused, channeltest.Rejecting: notify.Broken, channeltest.Refusing: notify.NotConnected,
		},
	})
}

func TestFramesAreTheFrozenBodies(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	got := make(chan string, 1)
	h.connect(1, func(c *client, id string, body []byte) { got <- string(body); ack(c, id, body) })
	r := h.Send(t.Context(), message(1))
	if r.Class != notify.OK || string(r.ResponseBody) != `{"ack":"ntf_0198c2"}` || r.RemoteAddr == "" {
		t.Errorf("result %+v", r)
	}
	if body := <-got; body != string(message(1).Body) {
		t.Errorf("frame %s", body)
	}
	if r := h.Send(t.Context(), message(2)); r.Class != notify.NotConnected {
		t.Errorf("another merchant's: %q", r.Class)
	}
}

// What another one acknowledges, or another id, is no acknowledgement.
func TestOnlyTheMerchantsOwnAckOfThatIDCounts(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.connect(1, func(c *client, _ string, _ []byte) { c.say(`{"ack":"ntf_other"}`) })
	stranger := h.connect(2, nothing)
	msg := message(1)
	msg.Timeout = 300 * time.Millisecond
	stranger.say(`{"ack":"ntf_0198c2"}`)
	if r := h.Send(t.Context(), msg); r.Class != notify.Timeout {
		t.Errorf("%q (%s)", r.Class, r.Error)
	}
	if h.waits(1) != 0 {
		t.Error("an attempt still waits")
	}
}

func TestConnectionsOfOneMerchantTakeTurns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var told [2]atomic.Int64
	for i := range told {
		h.connect(1, func(c *client, id string, body []byte) { told[i].Add(1); ack(c, id, body) })
	}
	for range 10 {
		if r := h.Send(t.Context(), message(1)); r.Class != notify.OK {
			t.Fatalf("%q (%s)", r.Class, r.Error)
		}
	}
	if told[0].Load() != 5 || told[1].Load() != 5 {
		t.Errorf("notified %d and %d times", told[0].Load(), told[1].Load())
	}
}

func TestOneMerchantMayNotTakeAllConnections(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for range maxEach {
		h.connect(1, nothing)
	}
	if code := h.connect(1, nothing).closedWith(); code != ws.CloseTryAgainLater {
		t.Errorf("closed with %d", code)
	}
	h.connect(2, ack)
	if r := h.Send(t.Context(), message(2)); r.Class != notify.OK {
		t.Errorf("another merchant: %q (%s)", r.Class, r.Error)
	}
}

func TestWhatIsNoAnswerEndsTheConnection(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for text, code := range map[string]int{
		"hello": ws.ClosePolicyViolation, `{"ack":""}`: ws.ClosePolicyViolation, `{"ack":"a","nack":"a"}`: ws.ClosePolicyViolation,
		`{"ack":"` + strings.Repeat("a", maxFrame) + `"}`: ws.CloseMessageTooBig,
	} {
		c := h.connect(1, nothing)
		c.say(text)
		if got := c.closedWith(); got != code {
			t.Errorf("%.20s: closed with %d, want %d", text, got, code)
		}
	}
}

// Pings cost us an answer each: a flood of them is slowed down like one of answers, so that it
// does not take processor time from others.
func TestAFloodOfPingsIsSlowedDown(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := h.connect(1, ack)
	var pongs atomic.Int64
	c.SetPongHandler(func(string) error { pongs.Add(1); return nil })
	start := time.Now()
	for range 3 * answersBurst {
		if err := c.WriteControl(ws.PingMessage, nil, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the burst is answered", func() bool { return pongs.Load() >= answersBurst })
	waittest.Stays(t, "no more pings are answered than may be", 500*time.Millisecond, func() bool {
		n := pongs.Load() // before the time is read: later ones count for more
		return n <= answersBurst+int64(time.Since(start).Seconds()*answersPerSecond)+1
	})
}

func TestARevokedKeyEndsItsConnections(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.pingEvery = 10 * time.Millisecond
	c := h.connect(1, ack)
	if r := h.Send(t.Context(), message(1)); r.Class != notify.OK {
		t.Fatalf("%q (%s)", r.Class, r.Error)
	}
	h.allowed.Store(false)
	if code := c.closedWith(); code != ws.ClosePolicyViolation {
		t.Errorf("closed with %d", code)
	}
}

func TestStoppingSaysGoodbye(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	clients := []*client{h.connect(1, nothing), h.connect(2, nothing)}
	result := make(chan notify.Result, 1)
	go func() { result <- h.Send(t.Context(), message(1)) }()
	waittest.Until(t, "its answer is waited for", func() bool { return h.waits(1) > 0 })
	_ = h.Close()
	for _, c := range clients {
		if code := c.closedWith(); code != ws.CloseGoingAway {
			t.Errorf("closed with %d", code)
		}
	}
	if r := <-result; r.Class != notify.Broken {
		t.Errorf("the attempt under way: %q (%s)", r.Class, r.Error)
	}
	if len(h.Connected()) != 0 || len(h.merchants) != 0 {
		t.Errorf("%v are still connected, %d known", h.Connected(), len(h.merchants))
	}
}

// A client that never reads, and so never closes cleanly, does not delay stopping; nor does one
// that goes on sending.
func TestStoppingWaitsForNobody(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var conns []*ws.Conn
	for range 2 {
		conn, _, err := ws.DefaultDialer.Dial("ws://"+h.addr+"/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		conns = append(conns, conn)
	}
	waittest.Until(t, "the hub has both", func() bool { return h.count(1) == len(conns) })
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		for range time.Tick(10 * time.Millisecond) {
			if conns[1].WriteMessage(ws.TextMessage, []byte(`{"ack":"ntf_other"}`)) != nil {
				return
			}
		}
	}()
	start := time.Now()
	_ = h.Close()
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("stopped after %s", took)
	}
	<-talking // its connection is closed, too
}

func (h *host) waits(merchantID int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.merchants[merchantID].waiting)
}

func TestEachConnectionIsAnnounced(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var mu sync.Mutex
	var announced []int64
	h.OnConnect = func(id int64) {
		mu.Lock()
		defer mu.Unlock()
		announced = append(announced, id)
	}
	h.connect(1, nothing)
	h.connect(2, nothing)
	if ids := h.Connected(); len(ids) != 2 || !slices.Contains(ids, 2) {
		t.Errorf("connected %v", ids)
	}
	_ = h.Close() // waits for the announcements too
	slices.Sort(announced)
	if !slices.Equal(announced, []int64{1, 2}) {
		t.Errorf("announced %v", announced)
	}
}

func TestOrdinaryRequestsAreNotUpgraded(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	resp, err := http.Get("http://" + h.addr + "/1")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusBadRequest || h.count(1) != 0 {
		t.Errorf("status %d", resp.StatusCode)
	}
}
