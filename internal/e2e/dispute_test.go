package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const stripeSecret = "whsec_e2e_0123456789abcdef"

const stripeSupplier = `
  - code: st-main
    kind: stripe
    enabled: true
    config: {webhook_secrets: [` + stripeSecret + `]}`

// stripe sends a genuine event that must be taken.
func (w *world) stripe(id, kind string, created time.Time, object map[string]any) {
	w.t.Helper()
	w.stripeAs("st-main", stripeSecret, id, kind, created, object)
}

// stripeAs is stripe for the supplier with this code and secret.
func (w *world) stripeAs(code, secret, id, kind string, created time.Time, object map[string]any) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "type": kind, "created": created.Unix(), "data": map[string]any{"object": object}})
	if err != nil {
		w.t.Fatal(err)
	}
	stamp := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "." + string(body)))
	header := http.Header{
		"Content-Type":     {"application/json"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))},
	}
	a, err := w.do(http.MethodPost, "/callback/"+code, "", header, string(body))
	if err != nil || a.status != http.StatusOK {
		w.t.Fatalf("%s: %d %s, %v\n%s", kind, a.status, a.body, err, w.server.tail())
	}
}

func intent(no, id string) map[string]any {
	return map[string]any{
		"id": id, "object": "payment_intent", "status": "succeeded", "amount": 1999, "amount_received": 1999, "currency": "usd",
		"metadata": map[string]any{"order_no": no},
	}
}

// TestADisputeIsSeenAtOnce: a paid order is disputed in three messages, of which the
// oldest comes last.
func TestADisputeIsSeenAtOnce(t *testing.T) {
	var mu sync.Mutex
	var received []string
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		received = append(received, string(body))
	}))
	t.Cleanup(chat.Close)
	each(t, options{environ: []string{
		"BACKSTOP_ALERT_URLS=generic+" + chat.URL + "/room?template=json", "BACKSTOP_ALERT_LANGUAGE=en",
	}}, func(t *testing.T, w *world) {
		w.apply(w.config(stripeSupplier))
		w.start("")
		began := time.Now()
		no := w.create("dispute", requestBody{"supplier": "st-main", "currency": "USD"})
		w.stripe("evt_1", "payment_intent.succeeded", began, intent(no, "pi_1"))
		dispute := func(status string) map[string]any {
			return map[string]any{
				"id": "du_1", "object": "dispute", "amount": 1999, "currency": "usd", "payment_intent": "pi_1", "charge": "ch_1",
				"reason": "product_not_received", "status": status, "evidence_details": map[string]any{"due_by": 1792828800},
			}
		}
		w.stripe("evt_2", "charge.dispute.created", began.Add(-2*time.Second), dispute("needs_response"))
		w.stripe("evt_4", "charge.dispute.closed", began, dispute("lost"))
		w.stripe("evt_3", "charge.dispute.funds_withdrawn", began.Add(-time.Second), dispute("under_review"))
		a := w.request(http.MethodGet, "/api/v1/admin/exceptions?order_no="+no, w.token, "")
		if kinds := w.exceptions(no); !slices.Equal(kinds, []string{"dispute_opened"}) {
			t.Fatalf("exceptions %v", kinds)
		}
		for path, want := range map[string]string{
			"amount": "1999", "currency": "USD", "state": "resolved", "order_no": no,
			"detail reason": "product_not_received", "detail status": "lost", "detail due_by": "2026-10-24T08:00:00Z",
			"detail dispute_no": "du_1", "detail supplier": "st-main",
		} {
			if got := a.json(append([]string{"items", "0"}, strings.Fields(path)...)...); got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
		if o := w.order(no); o.json("status") != "paid" || o.json("version") != "2" {
			t.Errorf("the order moved: %s", o.body)
		}
		w.within(30*time.Second, "the alert arrives", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(received, func(text string) bool {
				return strings.Contains(text, "1 dispute (USD 19.99)") &&
					strings.Contains(text, w.address+"/exceptions?kind=dispute_opened")
			})
		})

		// What the adapter does not know is seen, once; what it names as harmless is not.
		for i := range 3 {
			w.stripe(fmt.Sprint("evt_po_", i), "payout.failed", began, map[string]any{"id": "po_1"})
			w.stripe(fmt.Sprint("evt_cu_", i), "customer.updated", began, map[string]any{"id": "cu_1"})
		}
		if kinds := w.exceptions(""); !slices.Equal(kinds, []string{"unknown_event", "dispute_opened"}) {
			t.Errorf("exceptions %v", kinds)
		}

		// An intent that is cancelled ends no order, which another intent may pay.
		cancelled := w.create("cancelled", requestBody{"supplier": "st-main", "currency": "USD"})
		w.stripe("evt_9", "payment_intent.canceled", began, intent(cancelled, "pi_9"))
		if o := w.order(cancelled); o.json("status") != "pending" {
			t.Errorf("one intent was cancelled: %s", o.body)
		}
		w.stripe("evt_10", "payment_intent.succeeded", began, intent(cancelled, "pi_10"))
		if o := w.order(cancelled); o.json("status") != "paid" {
			t.Errorf("another intent was paid: %s", o.body)
		}
		w.books()
	})
}
