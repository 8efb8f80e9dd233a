package stripe

import (
	"encoding/json"
	"testing"
	"time"

	"backstop/internal/supplier"
)

func TestAnEventOfOurOwnIsTaken(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", `, "api_key": "sk_test_1"`, `, "livemode": true`} {
		config := json.RawMessage(`{"webhook_secrets": ["whsec_new", "whsec_old"]` + mode + `}`)
		adapter, err := Kind.New("st", config, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []supplier.Status{supplier.Paid, supplier.Failed, supplier.Closed} {
			now := time.Now()
			req, err := Kind.Sign(config, supplier.Report{OrderRef: "SO1", TradeNo: "pi_1", Amount: 1999, Currency: "USD", Status: status, At: now})
			if err != nil {
				t.Fatal(err)
			}
			req.ReceivedAt = now
			got, err := adapter.Parse(req, new(supplier.Trace))
			if err != nil || got.OrderRef != "SO1" || got.TradeNo != "pi_1" || got.Amount != 1999 || got.Currency != "USD" || got.Status != status {
				t.Errorf("%s %s: %+v, %v", config, status, got, err)
			}
		}
	}
	if _, err := Kind.Sign(json.RawMessage(`{"webhook_secrets": ["key"]}`), supplier.Report{Status: supplier.Paid}); supplier.AsField(err) == nil {
		t.Errorf("with settings that no adapter takes: %v", err)
	}
}
