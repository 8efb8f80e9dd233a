package demo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"backstop/internal/notify/fakemerchant"
	"backstop/internal/simulator"
)

// shop is a simulated merchant: its keys, and its server for notifications.
type shop struct {
	code, name string
	share      int // of 100 orders
	apiKey     string
	payoutKey  string
	secret     []byte
	server     *fakemerchant.Merchant
	taken      atomic.Int64 // notifications answered 200
	unsigned   atomic.Int64 // requests with a wrong signature: must stay 0
}

// shopList returns the merchants without their servers, those with the most orders first.
func shopList() []*shop {
	return []*shop{
		{code: "demo-fast", name: "顺风快餐 Fast Foods", share: 50},
		{code: "demo-slow", name: "慢读书店 Slow Books", share: 15},
		{code: "demo-flaky", name: "千层酥饼 Flaky Pastry", share: 15},
		{code: "demo-down", name: "暖绒家纺 Down Feathers", share: 10},
		{code: "demo-hanging", name: "悬空花园 Hanging Gardens", share: 10},
	}
}

// openShops starts one merchant of each behaviour.
func openShops() ([]*shop, error) {
	shops := shopList()
	for _, s := range shops {
		s.apiKey, s.payoutKey = "sk_demo_"+randomHex(24), "sk_demo_pay_"+randomHex(24)
		s.secret = []byte(randomHex(16)) // 32 bytes
		server, err := fakemerchant.Open(fakemerchant.Options{Keep: 1024})
		if err != nil {
			closeShops(shops)
			return nil, err
		}
		s.server = server
		server.Behave(s.behaviour())
	}
	return shops, nil
}

func closeShops(shops []*shop) {
	for _, s := range shops {
		if s.server != nil {
			_ = s.server.Close()
		}
	}
}

// behaviour returns how the merchant answers. Every merchant checks the signature first.
func (s *shop) behaviour() fakemerchant.Behaviour {
	take := func(x *fakemerchant.Exchange) {
		s.taken.Add(1)
		fakemerchant.Answer(http.StatusOK, "success")(x)
	}
	then := fakemerchant.Behaviour(take)
	switch s.code {
	case "demo-slow":
		then = func(x *fakemerchant.Exchange) {
			fakemerchant.Sleep(2*time.Second+rand.N(2*time.Second), take)(x)
		}
	case "demo-flaky":
		// A random third fails. A merchant that rejected every first attempt would stay parked
		// forever, since every probe is a first attempt too.
		then = func(x *fakemerchant.Exchange) {
			if rand.N(3) == 0 {
				fakemerchant.Answer(http.StatusInternalServerError, "not yet")(x)
				return
			}
			take(x)
		}
	case "demo-down":
		then = fakemerchant.Answer(http.StatusInternalServerError, "down for maintenance")
	case "demo-hanging":
		then = fakemerchant.Hang()
	}
	return func(x *fakemerchant.Exchange) {
		if fakemerchant.Verify(x.Request, s.secret) != nil {
			s.unsigned.Add(1)
		}
		then(x)
	}
}

// autoLimit is the largest refund or payout that needs no approval, in minor units.
const autoLimit = 12_000

// declaration returns the apply file of the simulated merchants and suppliers; JSON is valid
// YAML. Suppliers are called at base; "" = they cannot be called. Merchants have no endpoints:
// each order and payout has the notify_url of this run.
func declaration(payers []*simulator.Account, base string, shops []*shop) ([]byte, error) {
	var suppliers, merchants, limits, accounts []map[string]any
	limited := map[string]bool{}
	for _, p := range payers {
		x := p.Settings(base)
		x["name"] = names[p.Kind]
		x["fees"] = map[string]any{"rate": "0.38%", "refund": "keep"}
		if !limited[p.Currency] { // larger refunds and payouts wait for two operators
			limits, limited[p.Currency] = append(limits, map[string]any{
				"currency": p.Currency, "refund_auto": autoLimit,
				"refund_auto_day": 100_000_000, "payout_auto": autoLimit,
			}), true
		}
		x["ask_pending"] = false // an order whose payment was not started closes when it expires: a later payment is late
		suppliers = append(suppliers, x)
	}
	for _, s := range shops {
		merchants = append(merchants, map[string]any{
			"code": s.code, "name": s.name, "api_key": s.apiKey,
			"signing_secret": "whsec_" + base64.StdEncoding.EncodeToString(s.secret),
			"notify":         map[string]any{"timeout": "5s"},
			"fees":           []map[string]any{{"supplier": "*", "rate": "0.6%", "min": 1, "refund": "return"}},
			"limits":         limits,
			"payout_key":     s.payoutKey,
			"payout_fees":    []map[string]any{{"supplier": "*", "fixed": 10}},
		})
		accounts = append(
			accounts,
			map[string]any{
				"merchant": s.code, "code": "bank", "kind": "bank_card", "holder": s.name, "number": "6222000011114711",
				"bank": "ICBC",
			},
			map[string]any{"merchant": s.code, "code": "alipay", "kind": "alipay", "holder": s.name, "number": s.code + "@pay.example"},
		)
	}
	text, err := json.Marshal(map[string]any{"suppliers": suppliers, "merchants": merchants, "payout_accounts": accounts})
	if err != nil {
		return nil, fmt.Errorf("write the declaration: %w", err)
	}
	return text, nil
}
