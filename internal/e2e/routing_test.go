package e2e

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/notify/fakemerchant"
)

// TestEveryoneIsReachedTheWayTheyWant goes through routing on both engines: two
// addresses with one failing, gone and back again, both notified, an event switched
// off, and a warehouse that subscribes to all.
func TestEveryoneIsReachedTheWayTheyWant(t *testing.T) {
	chat := newChat(t)
	each(t, options{environ: []string{
		"BACKSTOP_ALERT_URLS=generic+" + chat.server.URL + "/room?template=json", "BACKSTOP_ALERT_LANGUAGE=en",
	}}, func(t *testing.T, w *world) {
		r := &routing{world: w, second: merchantAt(t), warehouse: merchantAt(t)}
		w.apply(r.config("failover", "[]"))
		w.start("")
		r.failover()
		r.gone(chat)
		r.all()
		r.switchedOff()
		if n := len(received(r.warehouse, "")); n != r.paid {
			t.Errorf("the warehouse received %d of %d payments", n, r.paid)
		}
		if kinds := w.exceptions(""); len(kinds) != 0 {
			t.Errorf("exceptions %v", kinds)
		}
		w.books()
	})
}

// routing is a merchant with two addresses and a warehouse.
type routing struct {
	*world
	second, warehouse *fakemerchant.Merchant
	paid              int
}

func merchantAt(t *testing.T) *fakemerchant.Merchant {
	t.Helper()
	m, err := fakemerchant.Open(fakemerchant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var warehouseSecret = []byte("fedcba9876543210fedcba9876543210")

func (r *routing) config(balance, events string) string {
	urls := `urls: ["` + r.merchant.URL() + `"]`
	return strings.Replace(r.world.config(""), urls, urls+`, balance: `+balance+`, events: `+events+
		`, endpoints: [{name: second, url: "`+r.second.URL()+`", headers: {X-Tenant: seven}}]`, 1) + `
subscriptions:
  - code: warehouse
    merchants: [m1]
    events: [order.paid]
    signing_secret: whsec_` + base64.StdEncoding.EncodeToString(warehouseSecret) + `
    urls: ["` + r.warehouse.URL() + `"]
    schedule: [1s, 1s]
`
}

// pay makes a paid order and waits until the merchant's part has the given status.
func (r *routing) pay(out, status string) (no string) {
	r.t.Helper()
	no = r.create(out, nil)
	r.wantAccepted(callbackForm("sp-main", no, "T-"+out, 1999))
	r.paid++
	r.wantOrder(no, 10*time.Second, map[string]string{"status": "paid", "notify_status": status})
	return no
}

// received is what a recipient was sent about an order, or about all ("").
func received(m *fakemerchant.Merchant, no string) (list []fakemerchant.Request) {
	for _, r := range m.Requests() {
		if no == "" || bytes.Contains(r.Body, []byte(strconv.Quote(no))) {
			list = append(list, r)
		}
	}
	return list
}

func (r *routing) failover() {
	r.merchant.Behave(fakemerchant.Answer(500, "down"))
	no := r.pay("failover", "delivered")
	first, second := received(r.merchant, no), received(r.second, no)
	if len(first) != 1 || len(second) != 1 || first[0].ID != second[0].ID {
		r.t.Fatalf("the failing address received %d times, the other one %d times", len(first), len(second))
	}
	if second[0].Header.Get("X-Tenant") != "seven" {
		r.t.Errorf("the address's own header: %v", second[0].Header)
	}
	r.within(5*time.Second, "the warehouse is notified", func() bool { return len(received(r.warehouse, no)) == 1 })
	notified := received(r.warehouse, no)[0]
	if err := fakemerchant.Verify(notified, warehouseSecret); err != nil || notified.ID != second[0].ID ||
		!bytes.Equal(notified.Body, second[0].Body) {
		r.t.Errorf("the warehouse received %s %s, %v", notified.ID, notified.Body, err)
	}
}

// ping tries an address by the admin API.
func (r *routing) ping(endpoint string) answer {
	r.t.Helper()
	return r.request(http.MethodPost, "/api/v1/admin/merchants/m1/ping", r.token, `{"endpoint":"`+endpoint+`"}`)
}

func (r *routing) gone(chat *chat) {
	r.merchant.Behave(fakemerchant.Answer(410, "gone"))
	r.pay("gone", "delivered")
	chat.wants(r.world, "an endpoint answered 410")
	before := 0
	r.within(10*time.Second, "the address is left alone", func() bool {
		before = r.merchant.Count()
		r.pay("left-alone-"+strconv.Itoa(r.paid), "delivered")
		return r.merchant.Count() == before
	})
	if a := r.ping(r.merchant.URL()); a.status != 200 || a.json("ok") != "false" || a.json("http_status") != "410" ||
		a.json("response_body") != "gone" {
		r.t.Errorf("ping: %d %s", a.status, a.body)
	}
	r.merchant.Behave(fakemerchant.Answer(200, "pong"))
	if a := r.ping(r.merchant.URL()); a.json("ok") != "true" || a.json("response_body") != "pong" {
		r.t.Errorf("ping: %d %s", a.status, a.body)
	}
	if out := r.apply(r.config("failover", "[]")); !strings.Contains(out, "merchant m1 changed: an address is enabled again") {
		r.t.Errorf("apply printed %q", out)
	}
	r.within(10*time.Second, "the address is used again", func() bool {
		return len(received(r.merchant, r.pay("back-"+strconv.Itoa(r.paid), "delivered"))) == 1
	})
}

func (r *routing) all() {
	r.apply(r.config("all", "[]"))
	r.second.Behave(fakemerchant.FailFirst(1, 503, fakemerchant.Answer(200, "")))
	r.within(10*time.Second, "both addresses are notified", func() bool {
		no := r.pay("all-"+strconv.Itoa(r.paid), "delivered")
		return len(received(r.merchant, no)) == 1 && len(received(r.second, no)) == 2
	})
}

func (r *routing) switchedOff() {
	r.apply(r.config("failover", "[order.closed]"))
	var no string
	r.within(10*time.Second, "paid orders are skipped", func() bool {
		no = r.create("off-"+strconv.Itoa(r.paid), nil)
		r.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
		r.paid++
		a := r.wantOrder(no, 5*time.Second, map[string]string{"status": "paid"})
		return a.json("notify_status") == "none"
	})
	closed := r.create("off-closed", nil)
	if a := r.request(http.MethodPost, "/api/v1/orders/"+closed+"/cancel", apiKey, ""); a.status != 200 {
		r.t.Fatalf("cancel: %d %s", a.status, a.body)
	}
	r.wantOrder(closed, 5*time.Second, map[string]string{"status": "closed", "notify_status": "delivered"})
	if n := len(received(r.merchant, no)) + len(received(r.second, no)); n != 0 {
		r.t.Errorf("notified %d times of what is switched off", n)
	}
	r.within(5*time.Second, "the warehouse is notified all the same", func() bool { return len(received(r.warehouse, no)) == 1 })
}

// chat is where alerts go.
type chat struct {
	server   *httptest.Server
	mu       sync.Mutex
	received []string
}

func newChat(t *testing.T) *chat {
	c := &chat{}
	c.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, string(body))
	}))
	t.Cleanup(c.server.Close)
	return c
}

// wants waits until a text was received from this installation.
func (c *chat) wants(w *world, text string) {
	w.t.Helper()
	w.within(30*time.Second, "the message arrives: "+text, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.received, func(message string) bool {
			return strings.Contains(message, text) && strings.Contains(message, w.address)
		})
	})
}
