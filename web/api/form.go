package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/payment"
	"backstop/internal/stock"
	"backstop/internal/supplier"
	"backstop/web"
)

// Limits of an order's fields.
const (
	maxOutTradeNo = 64
	maxSubject    = 256 // characters
	maxURL        = 2048
	maxCode       = 64 // suppliers' codes, SKUs, currencies
	maxItems      = 100
	maxQuantity   = 1_000_000
)

// readCreate parses a new order: names, types and lengths of the fields. Package payment checks
// whether supplier and currency exist.
func readCreate(body []byte, maxExpiry time.Duration) (payment.CreateRequest, error) {
	f, err := readForm(body, "out_trade_no", "amount", "currency", "supplier", "subject", "notify_url", "expires_in", "items")
	if err != nil {
		return payment.CreateRequest{}, err
	}
	r := payment.CreateRequest{
		OutTradeNo: f.text("out_trade_no", true, maxOutTradeNo),
		Amount:     f.number("amount", true, 1, money.MaxMinor),
		Currency:   f.text("currency", true, maxCode),
		Supplier:   f.text("supplier", true, maxCode),
		Subject:    f.text("subject", true, maxSubject),
		NotifyURL:  f.text("notify_url", false, maxURL),
		ExpiresIn:  f.number("expires_in", false, 1, int64(maxExpiry/time.Second)),
	}
	if problem := badOutTradeNo(r.OutTradeNo); problem != "" {
		f.blame("out_trade_no", problem)
	}
	r.Items = f.items()
	return r, f.err
}

// Limits of a request to pay.
const (
	maxMethod = 16
	maxPayer  = 128
	maxIP     = 45
)

// readPay parses a request to pay; an empty body means the defaults.
func readPay(body []byte) (r payment.PayRequest, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return r, nil
	}
	f, err := readForm(body, "method", "supplier", "return_url", "client_ip", "payer")
	if err != nil {
		return r, err
	}
	r = payment.PayRequest{
		Method: f.text("method", false, maxMethod), Supplier: f.text("supplier", false, maxCode), ReturnURL: f.text("return_url", false,
			maxURL),
		ClientIP: f.text("client_ip", false, maxIP), Payer: f.text("payer", false, maxPayer),
	}
	if r.Method != "" && !slices.Contains(payMethods, r.Method) {
		f.blame("method", "use "+strings.Join(payMethods, ", "))
	}
	if _, err := netip.ParseAddr(r.ClientIP); r.ClientIP != "" && err != nil {
		f.blame("client_ip", "use an IP address")
	}
	if u, err := url.Parse(r.ReturnURL); r.ReturnURL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		f.blame("return_url", "use an http or https URL")
	}
	return r, f.err
}

var payMethods = []string{supplier.MethodQR, supplier.MethodRedirect, supplier.MethodApp}

// badOutTradeNo returns what is wrong with a merchant's number, or "".
func badOutTradeNo(no string) string {
	if no == "" || len(no) > maxOutTradeNo || strings.ContainsFunc(no, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Sprintf("use 1 to %d visible ASCII characters", maxOutTradeNo)
	}
	return ""
}

// form is a JSON object that is read field by field; the first problem is kept.
type form struct {
	path   string // of the object inside the body: "items[2]."
	fields map[string]json.RawMessage
	err    error
}

// readForm parses an object with only known fields. encoding/json would accept "Amount" for
// "amount", and the last of two, so names are compared here, exactly.
func readForm(body []byte, known ...string) (*form, error) {
	if err := supplier.CheckJSON(body); err != nil {
		return nil, &web.Error{Status: 400, Code: "bad_json", Message: err.Error()}
	}
	f := &form{}
	if json.Unmarshal(body, &f.fields) != nil || f.fields == nil { // nil means null
		return nil, &web.Error{Status: 400, Code: "bad_json", Message: "the JSON is not an object"}
	}
	f.onlyKnown(known)
	return f, f.err
}

func (f *form) onlyKnown(known []string) {
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		if !slices.Contains(known, name) {
			f.blame(textlimit.Clip(name, 40), "unknown field; known are "+strings.Join(known, ", "))
			return
		}
	}
}

func (f *form) blame(field, problem string) {
	if f.err == nil {
		f.err = web.InvalidField(f.path+field, problem)
	}
}

// raw returns a field's JSON. null counts as missing.
func (f *form) raw(name string, required bool) (json.RawMessage, bool) {
	raw, ok := f.fields[name]
	if ok && string(raw) != "null" {
		return raw, true
	}
	if required {
		f.blame(name, "this field is required")
	}
	return nil, false
}

func (f *form) text(name string, required bool, limit int) string {
	raw, ok := f.raw(name, required)
	if !ok {
		return ""
	}
	var text string
	switch err := json.Unmarshal(raw, &text); {
	case err != nil:
		f.blame(name, "use a text")
	case required && text == "":
		f.blame(name, "this field is required")
	case utf8.RuneCountInString(text) > limit:
		f.blame(name, fmt.Sprintf("use at most %d characters", limit))
	case !web.IsStorable(text):
		f.blame(name, "use no control characters")
	}
	return text
}

// flag returns a field that is true or false; missing = false.
func (f *form) flag(name string) (on bool) {
	if raw, ok := f.raw(name, false); ok && json.Unmarshal(raw, &on) != nil {
		f.blame(name, "use true or false")
	}
	return on
}

// number reads an integer. JSON's 1e3 and 5.0 are refused: an amount written like that was
// computed as a fraction.
func (f *form) number(name string, required bool, minimum, maximum int64) int64 {
	raw, ok := f.raw(name, required)
	if !ok {
		return 0
	}
	var n int64
	err := json.Unmarshal(raw, &n)
	switch {
	case err != nil && strings.Trim(string(raw), "-0123456789") != "":
		f.blame(name, "use a whole number, without quotes")
	case err != nil, n < minimum, n > maximum: // err: more than 64 bits
		f.blame(name, fmt.Sprintf("use a number from %d to %d", minimum, maximum))
	}
	return n
}

func (f *form) items() []stock.Line {
	raw, ok := f.raw("items", false)
	if !ok {
		return nil
	}
	var objects []json.RawMessage
	if json.Unmarshal(raw, &objects) != nil {
		f.blame("items", "use a list of {sku, quantity}")
		return nil
	}
	if len(objects) > maxItems {
		f.blame("items", fmt.Sprintf("use at most %d items", maxItems))
		return nil
	}
	lines := make([]stock.Line, len(objects))
	for i, object := range objects {
		item := &form{path: fmt.Sprintf("items[%d].", i)}
		if json.Unmarshal(object, &item.fields) != nil || item.fields == nil {
			f.blame(fmt.Sprintf("items[%d]", i), "use {sku, quantity}")
			return nil
		}
		item.onlyKnown([]string{"sku", "quantity"})
		lines[i] = stock.Line{SKU: item.text("sku", true, maxCode), Quantity: item.number("quantity", true, 1, maxQuantity)}
		if item.err != nil && f.err == nil {
			f.err = item.err
		}
	}
	return lines
}
