package demo

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"backstop/internal/simulator"
)

// Of three payouts one's answer is lost and the server finds it, one comes back, one is ordinary
// and may wait for people.
func TestPayoutsAreLostReturnedAndPaid(t *testing.T) {
	t.Parallel()
	shops, err := openShops()
	if err != nil {
		t.Fatal(err)
	}
	defer closeShops(shops)
	for _, c := range []struct {
		n              int
		supplier, said string
		amount         int64
		statuses       []string // the answers to queries, in turn
		returns        bool
	}{
		{3, "demo-sorted", "succeeded, found by a query", autoLimit, []string{"crediting", "unknown", "succeeded"}, false},
		{1, "demo-alipay", "returned by the bank, reversed", autoLimit, []string{"succeeded", "succeeded", "reversed"}, true},
		{2, "demo-alipay", ": created", 20_000, nil, false},
	} {
		var drawn newPayout
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, key := "created", shops[0].payoutKey
			if r.Method == http.MethodGet {
				if asked < len(c.statuses) {
					status = c.statuses[asked]
				}
				asked++
				key = shops[0].apiKey
			} else if err := json.NewDecoder(r.Body).Decode(&drawn); err != nil {
				t.Error(err)
			}
			if r.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s %s with another key", r.Method, r.URL)
			}
			_, _ = w.Write([]byte(`{"payout_no":"PO1","status":"` + status + `"}`))
		}))
		server.Config.SetKeepAlivesEnabled(false)
		to, err := newServer(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		suppliers, out := newSuppliers(t), new(bytes.Buffer)
		s := &stage{
			to: to, o: Options{Callable: true}, suppliers: suppliers, payers: suppliers.Accounts(), shops: shops[:1],
			dice: rand.New(rand.NewPCG(1, 0)), tally: newTally(out),
		}
		one := s.cast(c.n)
		one.amount = 40_000
		if err := one.payOut(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
		if drawn.Supplier != c.supplier || drawn.Amount != c.amount || drawn.NotifyURL == "" || asked != len(c.statuses) ||
			!strings.Contains(out.String(), c.said) {
			t.Errorf("%d: %+v, %d queries\n%s", c.n, drawn, asked, out)
		}
		if r := suppliers.Payout(c.supplier, "PO1"); (r.Callback == simulator.CallbackNow) != c.returns {
			t.Errorf("%d: %+v", c.n, r)
		}
	}
}

func TestSomeMerchantsDrawMoney(t *testing.T) {
	t.Parallel()
	for _, callable := range []bool{true, false} {
		s := &stage{
			o: Options{Callable: callable}, payers: newSuppliers(t).Accounts(), shops: []*shop{{share: 100}},
			dice: rand.New(rand.NewPCG(1, 0)),
		}
		var drawn []int
		for n := range 2000 {
			one := s.cast(n + 1)
			if one.ending != paidOut {
				continue
			}
			if drawn = append(drawn, n+1); !one.payer.Payouts() {
				t.Errorf("%s cannot pay out", one.payer.Code)
			}
		}
		if callable && (len(drawn) < 50 || len(drawn) > 120 || !slices.Equal(drawn[:shownFirst], []int{1, 2, 3})) || !callable &&
			drawn != nil {
			t.Errorf("callable %t: %v", callable, drawn)
		}
	}
}
