package sortedparams

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"backstop/internal/supplier"
)

// What is signed here is taken by the adapter with the same settings, in every dialect that signs with
// a shared key.
func TestACallbackOfOurOwnIsTaken(t *testing.T) {
	t.Parallel()
	const common = `"order_field": "no", "trade_field": "trade", "amount_field": "money", "status_field": "state", "paid_values": ["YES"],
		"failed_values": ["NO & never"], "closed_values": ["<gone>"], "account_field": "pid", "account": "1001", "skip_empty": true`
	for _, format := range []string{"form", "query", "json", "xml"} {
		for _, more := range []string{
			`"algorithm": "md5", "key": "s3cret", "currency": "CNY"`,
			`"algorithm": "md5", "key": "s3cret", "key_append": "&key={key}", "sign_case": "upper", "currency_field": "cur", "amount_unit": "minor"`,
			`"algorithm": "hmac-sha256", "key": "s3cret", "sign_field": "hash", "currency_field": "cur"`,
		} {
			config := json.RawMessage(fmt.Sprintf(`{"format": %q, %s, %s}`, format, common, more))
			adapter, err := Kind.New("a", config, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, status := range []supplier.Status{supplier.Paid, supplier.Failed, supplier.Closed} {
				req, err := Kind.Sign(config, supplier.Report{OrderRef: "SO1", TradeNo: "T 1", Amount: 1999, Currency: "CNY", Status: status})
				if err != nil {
					t.Fatal(err)
				}
				got, err := adapter.Parse(req, new(supplier.Trace))
				if err != nil || got.OrderRef != "SO1" || got.TradeNo != "T 1" || got.Amount != 1999 || got.Currency != "CNY" ||
					got.Status != status || got.Identity["account"] != "1001" {
					t.Errorf("%s %s: %+v, %v", config, status, got, err)
				}
			}
		}
	}
}

func TestACallbackOfOurOwnNeedsAKeyAndAWord(t *testing.T) {
	t.Parallel()
	base := `"order_field": "no", "amount_field": "money", "currency": "CNY"`
	for config, want := range map[string]string{
		`{"algorithm": "md5", "key": "s3cret", "status_field": "state", "paid_values": ["YES"], ` + base + `}`: "failed_values",
		`{"algorithm": "md5", "key": "s3cret", ` + base + `}`:                                                  "status_field",
		`{"algorithm": "md5", ` + base + `}`:                                                                   "key",
	} {
		_, err := Kind.Sign(json.RawMessage(config), supplier.Report{OrderRef: "SO1", Amount: 1, Currency: "CNY", Status: supplier.Failed})
		if f := supplier.AsField(err); f == nil || f.Field != want {
			t.Errorf("%s: %v", config, err)
		}
	}
	pem, err := os.ReadFile("testdata/rsa-public.pem")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"algorithm": "rsa-sha256", "public_key": %q, %s}`, pem, base)
	if _, err := Kind.Sign(json.RawMessage(config), supplier.Report{Status: supplier.Paid}); !errors.Is(err, supplier.ErrSupplierKey) {
		t.Errorf("the supplier's own key: %v", err)
	}
}
