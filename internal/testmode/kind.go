// Package testmode is what test mode has besides the program itself: a supplier whose payments are made on
// a page, by keys of their own.
package testmode

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

const (
	// Code is the code of the supplier.
	Code = "sandbox"
	// PayPath is the prefix of the paths of the payment pages.
	PayPath = "/test/pay/"
	// FailingReason is the reason of a refund that the supplier refuses.
	FailingReason = "sandbox: fail"
)

// keyField is the field of the supplier's config with the key that signs its callbacks.
const keyField = "key"

// Kind is sortedparams, except that the supplier with Code starts payments and makes refunds inside this process.
// Its row is that of any other supplier, so that every command can read it. site returns the URL of test mode,
// where its pages are.
func Kind(site func() string) supplier.Kind {
	kind := sortedparams.Kind
	parent := kind.New
	kind.New = func(code string, config json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
		adapter, err := parent(code, config, out)
		if err != nil || code != Code {
			return adapter, err
		}
		return payments{adapter, site}, nil
	}
	return kind
}

// payments is the supplier with the calls that it answers itself.
type payments struct {
	supplier.Adapter
	site func() string
}

// Abilities implements supplier.Caller.
func (p payments) Abilities() supplier.Abilities {
	return supplier.Abilities{Payer: p, Refunder: p, RefundRepeat: supplier.Forever}
}

// answered is the exchange of a call that no network carried.
func answered(what string, class supplier.Class) supplier.Exchange {
	return supplier.Exchange{Class: class, Request: []byte(what)}
}

// Start implements supplier.Payer: the buyer pays on a page of ours.
func (p payments) Start(_ context.Context, x supplier.Payment) (supplier.Started, error) {
	if x.Method != "" && x.Method != supplier.MethodRedirect {
		return supplier.Started{}, &supplier.FieldError{Field: "method", Problem: "the sandbox has a page: use redirect"}
	}
	return supplier.Started{
		State: supplier.Accepted, Kind: supplier.ValueRedirect, Value: p.site() + PayPath + x.OrderNo, Word: "WAIT",
		Exchange: answered("start "+x.Reference, supplier.ClassOK),
	}, nil
}

// Refund implements supplier.Refunder. It succeeds at once, unless its reason asks for a failure.
func (p payments) Refund(_ context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if r.Reason == FailingReason {
		return supplier.RefundAnswer{
			State: supplier.RefundFailed, Word: "FAIL", Exchange: answered("refund "+r.No, supplier.ClassRefused),
		}, nil
	}
	return supplier.RefundAnswer{
		State: supplier.RefundSucceeded, SupplierNo: "SBR" + r.No, Word: "SUCCESS", Exchange: answered("refund "+r.No, supplier.ClassOK),
	}, nil
}

// RefundQuery implements supplier.Refunder: every refund that it was asked for is made.
func (p payments) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	return p.Refund(ctx, r)
}

// Declaration returns the apply file of the supplier, with a new key.
func Declaration() []byte {
	return written(map[string]any{"suppliers": []any{map[string]any{
		"code": Code, "kind": sortedparams.Kind.Name, "name": "Sandbox", "ask_pending": false,
		"config": config(rand.Text()),
	}}})
}

// config is the supplier's config with a key.
func config(key string) map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", keyField: key, "sign_case": "lower",
		"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
		"currency_field": "currency", "status_field": "status", "paid_values": []string{"PAID"}, "failed_values": []string{"FAILED"},
	}
}

func written(file map[string]any) []byte {
	text, err := json.Marshal(file) // JSON is valid YAML
	if err != nil {
		panic("testmode: " + err.Error()) // texts only
	}
	return text
}
