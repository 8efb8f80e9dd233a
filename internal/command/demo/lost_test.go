package demo

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"backstop/internal/simulator"
)

// If the server cannot query, a callback that never arrives would only leave a stuck order.
func TestOneOrderInTwentyLosesItsCallback(t *testing.T) {
	t.Parallel()
	for _, callable := range []bool{true, false} {
		s := &stage{
			o: Options{Callable: callable}, payers: newSuppliers(t).Accounts(), shops: []*shop{{share: 100}},
			dice: rand.New(rand.NewPCG(1, 0)),
		}
		n := 0
		for i := range 2000 {
			one := s.cast(i)
			if one.ending != lost {
				continue
			}
			n++
			if !one.starts {
				t.Errorf("no supplier can be queried for %+v", one)
			}
		}
		if callable && (n < 60 || n > 140) || !callable && n != 0 {
			t.Errorf("callable %t: %d of 2000", callable, n)
		}
	}
}

func TestALostPaymentIsFound(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := "paying"
		switch {
		case strings.HasPrefix(r.URL.Path, "/callback/"):
			t.Error("it was called back")
		case r.Method == http.MethodGet:
			if asked++; asked > 1 {
				status = "paid"
			}
		}
		_, _ = w.Write([]byte(`{"order_no":"383038098612682752","status":"` + status + `"}`))
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
		stage:  &stage{to: to, suppliers: suppliers, tally: newTally(out)},
		ending: lost, shop: shops[0], payer: suppliers.Accounts()[0], amount: 100, starts: true,
	}
	if err := one.act(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := suppliers.Order("demo-wechatpay", "383038098612682752"); r.State != simulator.StatePaid || r.MoneyMoved != 1 ||
		len(r.Callbacks) != 0 {
		t.Errorf("%+v", r)
	}
	if one.tally.found != 1 || !strings.Contains(out.String(), "paid, found by a query") {
		t.Error(out.String())
	}
}
