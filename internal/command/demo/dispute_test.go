package demo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/simulator"
)

// Of three disputes one waits, one is won and gets the money back, one is lost.
func TestDisputesAreWonAndLost(t *testing.T) {
	t.Parallel()
	var types []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ ID, Type string }
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			t.Error(err)
		}
		types = append(types, strings.TrimPrefix(event.Type, "charge.dispute."))
	}))
	server.Config.SetKeepAlivesEnabled(false)
	defer server.Close()
	to, err := newServer(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	suppliers, out := newSuppliers(t), new(bytes.Buffer)
	payer := suppliers.Accounts()[slices.IndexFunc(suppliers.Accounts(), func(p *simulator.Account) bool { return p.Disputes() != nil })]
	for n, want := range [][]string{
		{"created"}, {"created", "funds_withdrawn", "updated", "closed", "funds_reinstated"}, {"created", "funds_withdrawn", "closed"},
	} {
		types = nil
		one := &story{stage: &stage{to: to, suppliers: suppliers, tally: newTally(out)}, n: n, ending: disputed, payer: payer}
		if err := one.sendDispute(t.Context(), simulator.Fact{
			Ref: "O1", TradeNo: "pi_1", Amount: 1000, Currency: payer.Currency,
			At: time.Now(),
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(types, want) {
			t.Errorf("dispute %d: %q, want %q", n, types, want)
		}
	}
}
