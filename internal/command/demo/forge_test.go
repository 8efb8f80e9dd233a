package demo

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"backstop/internal/simulator"
	"backstop/internal/supplier"
	realalipay "backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	realstripe "backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// adapter returns the product's adapter for the simulated supplier.
func adapter(t *testing.T, p *simulator.Account) supplier.Adapter {
	t.Helper()
	kinds := map[string]supplier.Kind{
		"wechatpay": wechatpay.Kind, "alipay": realalipay.Kind, "stripe": realstripe.Kind, "sortedparams": sortedparams.Kind,
	}
	raw, err := json.Marshal(p.Settings("")["config"])
	if err != nil {
		t.Fatal(err)
	}
	a, err := kinds[p.Kind].New(p.Code, raw, nil)
	if err != nil {
		t.Fatalf("config of %s: %v", p.Code, err)
	}
	return a
}

func received(m simulator.Message) *supplier.Request {
	return &supplier.Request{Method: http.MethodPost, Header: m.Header, Body: m.Body, ReceivedAt: time.Now()}
}

func newSuppliers(t *testing.T) *simulator.Simulator {
	t.Helper()
	s, err := simulator.New(simulator.Options{Codes: codes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func eachPayer(t *testing.T, test func(t *testing.T, p *simulator.Account, a supplier.Adapter)) {
	for _, p := range newSuppliers(t).Accounts() {
		t.Run(p.Code, func(t *testing.T) { test(t, p, adapter(t, p)) })
	}
}

var aFact = simulator.Fact{Ref: "ord_1", TradeNo: "4200001", Amount: 1999, Currency: "CNY", At: time.Now()}

// of returns aFact in the supplier's currency.
func of(p *simulator.Account) simulator.Fact {
	f := aFact
	f.Currency = p.Currency
	return f
}

func TestAdaptersAcceptSimulatedSuppliers(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(t *testing.T, p *simulator.Account, a supplier.Adapter) {
		m, err := p.Callback(of(p))
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Parse(received(m), &supplier.Trace{})
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if got.OrderRef != aFact.Ref || got.Amount != aFact.Amount || got.Currency != p.Currency || got.Status != supplier.Paid {
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
	t.Parallel()
	can := 0
	eachPayer(t, func(t *testing.T, p *simulator.Account, a supplier.Adapter) {
		if p.Disputes() == nil {
			return
		}
		can++
		paid, err1 := p.Callback(of(p))
		m, err2 := p.Disputes().Dispute(of(p))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		first, err1 := a.Parse(received(paid), nil)
		got, err2 := a.Parse(received(m), nil)
		if err1 != nil || err2 != nil || got.Status != supplier.Disputed || got.TradeNo != first.TradeNo || got.Amount != aFact.Amount ||
			got.Dispute.DueBy.IsZero() {
			t.Errorf("%v %v: %+v", err1, err2, got)
		}
	})
	if can == 0 {
		t.Error("no supplier of the demo has disputes")
	}
}

func TestAdaptersRefuseForgeries(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(t *testing.T, p *simulator.Account, a supplier.Adapter) {
		for _, flip := range []bool{false, true} {
			m, err := forge(p, of(p), flip)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Parse(received(m), &supplier.Trace{}); err == nil {
				t.Errorf("flip %t was accepted: %+v", flip, got)
			}
		}
	})
}
