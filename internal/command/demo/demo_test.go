package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func noApply(context.Context, []byte) error { return nil }

func TestDemoLeavesOtherMachinesAlone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"http://192.0.2.1:8080", "https://pay.example.com", "http://127.0.0.1.example.com/", "ftp://127.0.0.1",
		"127.0.0.1:8080", "http://[2001:db8::1]:80",
	} {
		applied := false
		err := Run(t.Context(), Options{URL: address, Out: new(bytes.Buffer), Apply: func(context.Context, []byte) error {
			applied = true
			return nil
		}})
		if err == nil || applied {
			t.Errorf("%s: error %v, applied %t", address, err, applied)
		}
	}
}

func TestDemoNamesTheVariableWhereLoopbackIsNotAllowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"error":{"code":"invalid_field","message":"not public","field":"notify_url"}}`))
	}))
	defer server.Close()
	err := Run(t.Context(), Options{URL: server.URL, Out: new(bytes.Buffer), Apply: noApply})
	if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "BACKSTOP_NOTIFY_ALLOW_CIDRS") {
		t.Errorf("error %v", err)
	}
}

// A forged callback that seems to be answered 200 would alarm a newcomer.
func TestTheLineOfAForgeryNamesBothAnswers(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	to, err := newServer(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer to.http.CloseIdleConnections()
	out := new(bytes.Buffer)
	one := &story{
		stage: &stage{to: to, tally: newTally(out)}, ending: forged, shop: &shop{}, payer: newSuppliers(t).Accounts()[0],
		amount: 100,
	}
	if err := one.sendForgery(t.Context(), aFact); err != nil {
		t.Fatal(err)
	}
	if err := one.callBack(t.Context(), order{OrderNo: "1"}, aFact); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "1  forged: answered 401, genuine: answered 200\n") {
		t.Error(out.String())
	}
}

// With a server that accepts everything, the demo stays within its bounds and prints what it
// did; tests with the product check its effect.
func TestDemoEndsAfterItsOrders(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	orders := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/orders" {
			var asked newOrder
			if err := json.NewDecoder(r.Body).Decode(&asked); err == nil {
				mu.Lock()
				orders[asked.OutTradeNo] = true
				mu.Unlock()
			}
		}
		_, _ = w.Write([]byte(`{"order_no":"ord_1","status":"closed","notify_status":"none"}`))
	}))
	server.Config.SetKeepAlivesEnabled(false)
	defer server.Close()
	out := new(bytes.Buffer)
	start := time.Now()
	if err := Run(t.Context(), Options{URL: server.URL, Out: out, Apply: noApply, Rate: 100, Orders: 1, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if time.Since(start) > 10*time.Second || len(orders) > 2 || !strings.Contains(out.String(), "── end:") {
		t.Errorf("%d orders in %s:\n%s", len(orders), time.Since(start), out)
	}
}
