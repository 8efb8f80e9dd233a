package demo

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"backstop/internal/supplier"
	realalipay "backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	realstripe "backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// adapter makes the product's own reader of what the simulated supplier signs.
func adapter(t *testing.T, p payer) supplier.Adapter {
	t.Helper()
	kinds := map[string]supplier.Kind{
		"wechatpay": wechatpay.Kind, "alipay": realalipay.Kind, "stripe": realstripe.Kind, "sortedparams": sortedparams.Kind,
	}
	raw, err := json.Marshal(p.config)
	if err != nil {
		t.Fatal(err)
	}
	a, err := kinds[p.kind].New(p.code, raw)
	if err != nil {
		t.Fatalf("config of %s: %v", p.code, err)
	}
	return a
}

func received(m message) *supplier.Request {
	return &supplier.Request{Method: http.MethodPost, Header: m.header, Body: m.body, ReceivedAt: time.Now()}
}

func eachPayer(t *testing.T, test func(t *testing.T, p payer, a supplier.Adapter)) {
	payers, err := newPayers()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range payers {
		t.Run(p.code, func(t *testing.T) { test(t, p, adapter(t, p)) })
	}
}

var aFact = fact{OrderNo: "ord_1", TradeNo: "4200001", Amount: 1999, At: time.Now()}

func TestAdaptersAcceptSimulatedSuppliers(t *testing.T) {
	eachPayer(t, func(t *testing.T, p payer, a supplier.Adapter) {
		m, err := p.sign(aFact)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Parse(received(m), &supplier.Trace{})
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if got.OrderRef != aFact.OrderNo || got.Amount != aFact.Amount || got.Currency != p.currency || got.Status != supplier.Paid {
			t.Errorf("read %+v", got)
		}
		for name, want := range a.Identity() {
			if want != "" && got.Identity[name] != want {
				t.Errorf("identity %s is %q, want %q", name, got.Identity[name], want)
			}
		}
	})
}

func TestADisputeOfTheDemoIsOne(t *testing.T) {
	can := 0
	eachPayer(t, func(t *testing.T, p payer, a supplier.Adapter) {
		if p.dispute == nil {
			return
		}
		can++
		paid, err1 := p.sign(aFact)
		m, err2 := p.dispute(aFact)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		first, err1 := a.Parse(received(paid), nil)
		got, err2 := a.Parse(received(m), nil)
		if err1 != nil || err2 != nil || got.Status != supplier.Disputed || got.TradeNo != first.TradeNo || got.Amount != aFact.Amount || got.Dispute.DueBy.IsZero() {
			t.Errorf("%v %v: %+v", err1, err2, got)
		}
	})
	if can == 0 {
		t.Error("no supplier of the demo has disputes")
	}
}

func TestAdaptersRefuseForgeries(t *testing.T) {
	eachPayer(t, func(t *testing.T, p payer, a supplier.Adapter) {
		for _, flip := range []bool{false, true} {
			m, err := forge(p, aFact, flip)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Parse(received(m), &supplier.Trace{}); err == nil {
				t.Errorf("flip %t was accepted: %+v", flip, got)
			}
		}
	})
}
