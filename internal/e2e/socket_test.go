package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/fasthttp/websocket"
)

// TestAMerchantThatConnectsIsTold goes through the WebSocket on both engines: what
// is paid while the merchant is not connected waits and costs no attempt, comes as soon as
// the merchant connects, and the server says good-bye when it stops.
func TestAMerchantThatConnectsIsTold(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		w.apply(connecting(w))
		w.start("")
		pay := func(out string) (no string) {
			no = w.create(out, nil)
			w.wantAccepted(callbackForm("sp-main", no, "T-"+out, 1999))
			return no
		}
		early := pay("early")
		w.wantOrder(early, 5*time.Second, map[string]string{"status": "paid", "notify_status": "queued"})

		m := connectTo(t, w)
		w.wantOrder(early, 3*time.Second, map[string]string{"notify_status": "delivered"})
		late := pay("late")
		w.wantOrder(late, 3*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
		for _, no := range []string{early, late} {
			if n := m.received(no); n != 1 {
				t.Errorf("order %s was notified %d times", no, n)
			}
		}
		if kinds := w.exceptions(""); len(kinds) != 0 {
			t.Errorf("exceptions %v", kinds)
		}
		w.books()
		w.terminate()
		var closed *ws.CloseError
		if err := <-m.ended; !errors.As(err, &closed) || closed.Code != ws.CloseGoingAway {
			t.Errorf("the server stopped with %v", err)
		}
	})
}

// TestAMerchantMovesToTheOtherNodeWhenItsOwnDies has a merchant connected to a node
// without workers and then to one of two with them, while suppliers and operators use
// any. Then its node dies with notifications in its hands, and the merchant connects to
// the other.
func TestAMerchantMovesToTheOtherNodeWhenItsOwnDies(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	// Longer than it takes to kill a node that waits for an answer.
	one.apply(strings.Replace(connecting(one), "timeout: 2s", "timeout: 8s", 1))
	webNode := two.beside() // takes callbacks and requests, and has no workers
	webNode.args = []string{"--roles", "web"}
	for _, node := range []*world{one, two, webNode} {
		node.start("")
	}
	tr := newTraffic(balanced(one, two))
	pay := func(out string) string {
		no, ok := tr.create(out)
		if ok {
			tr.pay(no)
		}
		return no
	}
	received := func(m *socketMerchant, most time.Duration, orders ...string) {
		t.Helper()
		for _, no := range orders {
			two.wantOrder(no, most, map[string]string{"status": "paid", "notify_status": "delivered"})
			if n := m.received(no); n != 1 {
				t.Errorf("order %s was notified %d times over this connection", no, n)
			}
		}
	}

	if a := ping(two); a.json("class") != "not_connected" || a.json("ok") != "false" {
		t.Errorf("a ping of a merchant that is nowhere connected: %d %s", a.status, a.body)
	}
	m := connectTo(t, webNode)
	var early []string
	for i := range 30 {
		early = append(early, pay("early-"+strconv.Itoa(i)))
	}
	received(m, 5*time.Second, early...)
	if a := ping(two); a.json("class") != "ok" {
		t.Errorf("a ping of a merchant with a connection: %d %s", a.status, a.body)
	}
	m.leave()
	m = connectTo(t, one)
	for name, w := range map[string]*world{"its own node": one, "the other node": two, "one without workers": webNode} {
		if a := ping(w); a.json("class") != "ok" || !strings.Contains(a.json("response_body"), `"ack": "`+a.json("id")+`"`) {
			t.Errorf("a ping through %s: %d %s", name, a.status, a.body)
		}
	}
	if n := m.received(""); n != 3 { // pings are about no order
		t.Errorf("three pings were received %d times", n)
	}
	var notified []string
	for i := range 30 {
		notified = append(notified, pay("notified-"+strconv.Itoa(i)))
	}
	received(m, 10*time.Second, notified...)

	// It receives and does not answer: its node dies waiting for its answers.
	m.silent.Store(true)
	held := []string{pay("held-0"), pay("held-1"), pay("held-2")}
	one.within(5*time.Second, "the node has sent them", func() bool {
		return m.received(held[0])+m.received(held[1])+m.received(held[2]) == 3
	})
	pinged := make(chan answer, 1)
	go func() {
		a, err := two.do(http.MethodPost, "/api/v1/admin/merchants/m1/ping", two.token, nil, "")
		if err != nil {
			a.body = err.Error()
		}
		pinged <- a
	}()
	one.within(5*time.Second, "the node has sent the ping", func() bool { return m.received("") == 4 })
	one.kill()
	died := time.Now()
	<-m.ended
	var late []string // while it is nowhere connected
	for i := range 10 {
		late = append(late, pay("late-"+strconv.Itoa(i)))
	}
	for _, no := range late {
		two.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "notify_status": "queued"})
	}
	if a := <-pinged; a.status != http.StatusOK || a.json("class") != "internal" {
		t.Errorf("a ping whose node died: %d %s", a.status, a.body)
	}

	m = connectTo(t, two)
	received(m, 5*time.Second, late...)
	// The dead node's claims are free when their leases run out.
	received(m, 30*time.Second, held...)
	t.Logf("all notified %s after the kill", time.Since(died).Round(time.Millisecond))
	if a := ping(two); a.json("class") != "ok" {
		t.Errorf("a ping after the move: %d %s", a.status, a.body)
	}
	if kinds := two.exceptions(""); len(kinds) != 0 {
		t.Errorf("exceptions %v", kinds)
	}
	for _, what := range tr.unexpected {
		t.Errorf("unexpected answer: %s", what)
	}
	two.books()
}

// connecting is a configuration whose merchant connects to us.
func connecting(w *world) string {
	return strings.Replace(w.config(""), `urls: ["`+w.merchant.URL()+`"]`,
		`urls: null, endpoints: [{name: line, channel: websocket, url: "websocket:"}]`, 1)
}

// ping tries the merchant's line through a node.
func ping(w *world) answer {
	w.t.Helper()
	return w.request(http.MethodPost, "/api/v1/admin/merchants/m1/ping", w.token, "")
}

// socketMerchant is a merchant at its end of the line. It acknowledges everything, unless
// it is silent.
type socketMerchant struct {
	mu       sync.Mutex
	notified map[string]int // by order number; "" = pings
	silent   atomic.Bool
	ended    chan error
	conn     *ws.Conn
}

// leave ends the merchant's connection.
func (c *socketMerchant) leave() {
	_ = c.conn.Close()
	<-c.ended
}

func connectTo(t *testing.T, w *world) *socketMerchant {
	t.Helper()
	conn, _, err := ws.DefaultDialer.Dial("ws://"+w.address+"/api/v1/notify/ws", http.Header{"Authorization": {"Bearer " + apiKey}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &socketMerchant{notified: map[string]int{}, ended: make(chan error, 1), conn: conn}
	go func() {
		for {
			_, body, err := conn.ReadMessage()
			if err != nil {
				c.ended <- err
				return
			}
			var frame struct {
				ID   string
				Data struct {
					OrderNo string `json:"order_no"`
				}
			}
			if err := json.Unmarshal(body, &frame); err != nil {
				c.ended <- err
				return
			}
			c.mu.Lock()
			c.notified[frame.Data.OrderNo]++
			c.mu.Unlock()
			if !c.silent.Load() {
				_ = conn.WriteJSON(map[string]string{"ack": frame.ID})
			}
		}
	}()
	return c
}

func (c *socketMerchant) received(no string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notified[no]
}
