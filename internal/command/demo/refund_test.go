package demo

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSomeOrdersAreRefundedInTwoParts(t *testing.T) {
	t.Parallel()
	var parts []newRefund
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/refunds") {
			var part newRefund
			if err := json.NewDecoder(r.Body).Decode(&part); err != nil {
				t.Error(err)
			}
			parts = append(parts, part)
		}
		_, _ = w.Write([]byte(`{"order_no":"383038098612682752","status":"approved"}`))
	}))
	server.Config.SetKeepAlivesEnabled(false)
	defer server.Close()
	to, err := newServer(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	shops, err := openShops()
	if err != nil {
		t.Fatal(err)
	}
	defer closeShops(shops)
	suppliers, out := newSuppliers(t), new(bytes.Buffer)
	one := &story{
		stage: &stage{to: to, suppliers: suppliers, tally: newTally(out)}, ending: refunded, shop: shops[0],
		payer: suppliers.Accounts()[0], amount: 1000,
	}
	if err := one.act(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(parts) != 2 || parts[0].Amount+parts[1].Amount >= one.amount || parts[0].OutRefundNo == parts[1].OutRefundNo ||
		!strings.Contains(out.String(), "approved") {
		t.Errorf("%+v\n%s", parts, out)
	}
	// Without a supplier that can be called, none is refunded.
	for _, callable := range []bool{true, false} {
		s := &stage{
			o: Options{Callable: callable}, payers: suppliers.Accounts(), shops: []*shop{{share: 100}},
			dice: rand.New(rand.NewPCG(1, 0)),
		}
		n := 0
		for i := range 2000 {
			if s.cast(i).ending == refunded {
				n++
			}
		}
		if callable && (n < 80 || n > 160) || !callable && n != 0 {
			t.Errorf("callable %t: %d of 2000", callable, n)
		}
	}
}
