package testmode

import (
	"bytes"
	"encoding/json"
	"testing"

	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// adapterOf returns the declared supplier, and the key that signs its callbacks.
func adapterOf(t *testing.T) (adapter supplier.Adapter, key string) {
	t.Helper()
	var file struct {
		Suppliers []struct {
			Kind   string
			Config json.RawMessage
		}
	}
	if err := json.Unmarshal(Declaration(), &file); err != nil {
		t.Fatal(err)
	}
	kinds := supplier.Kinds{Kind(func() string { return "https://test.example" })}
	adapter, err := kinds.New(file.Suppliers[0].Kind, Code, file.Suppliers[0].Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Key string }
	if err := json.Unmarshal(file.Suppliers[0].Config, &config); err != nil {
		t.Fatal(err)
	}
	return adapter, config.Key
}

func TestEachScenarioSaysWhatItIsCalled(t *testing.T) {
	t.Parallel()
	adapter, key := adapterOf(t)
	o := &order.Order{OrderNo: "42", Amount: 1999, Currency: "USD"}
	seen := map[string]Scenario{}
	for _, s := range Scenarios {
		req, err := message(key, o, s)
		if err != nil || req.Path != "/callback/sandbox" {
			t.Fatalf("%s: %+v, %v", s, req, err)
		}
		got, err := adapter.Parse(req, new(supplier.Trace))
		if err != nil || got.OrderRef != o.OrderNo || got.Currency != o.Currency {
			t.Fatalf("%s: %+v, %v", s, got, err)
		}
		if (got.Amount != o.Amount) != (s == OtherAmount) {
			t.Errorf("%s: the amount is %d", s, got.Amount)
		}
		if want := map[bool]supplier.Status{true: supplier.Failed, false: supplier.Paid}[s == Fails]; got.Status != want {
			t.Errorf("%s: the status is %s", s, got.Status)
		}
		if s == OtherAmount && seen[got.EventKey] != "" {
			t.Errorf("%s is the same event as %s", s, seen[got.EventKey])
		}
		seen[got.EventKey] = s
		req.Body = bytes.Replace(req.Body, []byte("order_no=42"), []byte("order_no=43"), 1)
		if _, err := adapter.Parse(req, new(supplier.Trace)); err == nil {
			t.Errorf("%s: a changed order is accepted", s)
		}
	}
	if got := otherAmount(1); got <= 0 || got == 1 {
		t.Errorf("another amount than 1 is %d", got)
	}
}

func TestAPaymentIsMadeOnAPage(t *testing.T) {
	t.Parallel()
	adapter, _ := adapterOf(t)
	can := supplier.AbilitiesOf(adapter)
	got, err := can.Start(t.Context(), supplier.Payment{OrderNo: "42", Reference: "42_2"})
	if err != nil || got.State != supplier.Accepted || got.Kind != supplier.ValueRedirect || got.Value != "https://test.example/test/pay/42" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := can.Start(t.Context(), supplier.Payment{OrderNo: "42", Method: supplier.MethodQR}); supplier.AsField(err) == nil {
		t.Errorf("a QR code: %v", err)
	}
}

// Other suppliers of test mode are as they are elsewhere.
func TestOnlyTheSandboxMakesPaymentsItself(t *testing.T) {
	t.Parallel()
	var file struct {
		Suppliers []struct{ Config json.RawMessage }
	}
	if err := json.Unmarshal(Declaration(), &file); err != nil {
		t.Fatal(err)
	}
	adapter, err := Kind(func() string { return "" }).New("other", file.Suppliers[0].Config, nil)
	if err != nil || supplier.AbilitiesOf(adapter).Payer != nil {
		t.Errorf("another supplier starts payments: %v", err)
	}
}

func TestARefundFailsIfItsReasonSaysSo(t *testing.T) {
	t.Parallel()
	adapter, _ := adapterOf(t)
	can := supplier.AbilitiesOf(adapter)
	for reason, want := range map[string]supplier.RefundState{"": supplier.RefundSucceeded, FailingReason: supplier.RefundFailed} {
		r := supplier.Refund{No: "R1", Reason: reason}
		asked, err := can.Refund(t.Context(), r)
		queried, wrong := can.RefundQuery(t.Context(), r)
		if err != nil || wrong != nil || asked.State != want || queried.State != want {
			t.Errorf("%q: %+v %v, then %+v %v", reason, asked, err, queried, wrong)
		}
	}
}

func TestAKeyOfTestModeIsRecognised(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{NewAPIKey(): true, "sk_live_a": false, "sk_sandbox_a": false, "": false} {
		if merchant.IsTestKey(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}
