package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/fasthttp/websocket"
)

// TestAMerchantThatConnectsIsTold goes through the WebSocket on both engines: what
// is paid while nobody is connected waits and costs no attempt, comes as soon as
// the merchant connects, and the server says good-bye when it stops.
func TestAMerchantThatConnectsIsTold(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		w.apply(strings.Replace(w.config(""), `urls: ["`+w.merchant.URL()+`"]`,
			`endpoints: [{name: line, channel: websocket, url: "websocket:"}]`, 1))
		w.start("")
		pay := func(out string) (no string) {
			no = w.create(out, nil)
			w.wantTaken(callbackForm("sp-main", no, "T-"+out, 1999))
			return no
		}
		early := pay("early")
		w.wantOrder(early, 5*time.Second, map[string]string{"status": "paid", "notify_status": "queued"})

		m := connectTo(t, w)
		w.wantOrder(early, 3*time.Second, map[string]string{"notify_status": "delivered"})
		late := pay("late")
		w.wantOrder(late, 3*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
		for _, no := range []string{early, late} {
			if n := m.heard(no); n != 1 {
				t.Errorf("order %s was told %d times", no, n)
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

// caller is a merchant at its end of the line. It acknowledges everything.
type caller struct {
	mu    sync.Mutex
	told  map[string]int // by order number
	ended chan error
}

func connectTo(t *testing.T, w *world) *caller {
	t.Helper()
	conn, _, err := ws.DefaultDialer.Dial("ws://"+w.address+"/api/v1/notify/ws", http.Header{"Authorization": {"Bearer " + apiKey}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &caller{told: map[string]int{}, ended: make(chan error, 1)}
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
			c.told[frame.Data.OrderNo]++
			c.mu.Unlock()
			_ = conn.WriteJSON(map[string]string{"ack": frame.ID})
		}
	}()
	return c
}

func (c *caller) heard(no string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told[no]
}
