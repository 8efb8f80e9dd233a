package sortedparams

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// settings are a config as `apply` hands it over.
type settings map[string]any

// with returns a copy with some of the fields changed; nil takes a field out.
func (s settings) with(changes settings) settings {
	c := maps.Clone(s)
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

var basic = settings{
	"algorithm": "md5", "key": "test-only-key", "order_field": "order", "trade_field": "trade",
	"amount_field": "total", "currency": "CNY", "status_field": "state",
	"paid_values": []string{"OK"}, "failed_values": []string{"NO"},
}

func newAdapter(tb testing.TB, s settings) *adapter {
	tb.Helper()
	a, err := makeAdapter(s)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func asJSON(tb testing.TB, s any) json.RawMessage {
	tb.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func makeAdapter(s settings) (*adapter, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	made, err := Kind.New("s1", raw, nil)
	if err != nil {
		return nil, err
	}
	return made.(*adapter), nil
}

var dialect = regexp.MustCompile("(?s)```yaml\n# (testdata/\\S+)\n(.*?)```")

// The README's settings are the test's settings, and the messages were signed by
// md5sum and openssl.
func TestDialectsOfTheReadmeReadTheirMessages(t *testing.T) {
	t.Parallel()
	want := map[string]supplier.Callback{
		"testdata/epay.http": {
			EventKey: "trade:2026030108000100001:paid", OrderRef: "20260301080000001", TradeNo: "2026030108000100001",
			Status: supplier.Paid, RawStatus: "TRADE_SUCCESS", Amount: 1999, Currency: "CNY",
			Identity: map[string]string{"account": "1001"},
		},
		"testdata/aggregate.http": {
			EventKey: "trade:P20260301080000021:paid", OrderRef: "20260301080000002", TradeNo: "P20260301080000021",
			Status: supplier.Paid, RawStatus: "2", Amount: 1999, Currency: "CNY", Identity: map[string]string{"account": "20000077"},
		},
		"testdata/xml.http": {
			EventKey: "trade:4200000077202603010000000001:paid", OrderRef: "20260301080000003", TradeNo: "4200000077202603010000000001",
			Status: supplier.Paid, RawStatus: "SUCCESS", Amount: 1999, Currency: "CNY", Identity: map[string]string{"account": "30000088"},
		},
		"testdata/json.http": {
			EventKey: "trade:e1f0b1a6-20260301-0004:paid", OrderRef: "20260301080000004", TradeNo: "e1f0b1a6-20260301-0004",
			Status: supplier.Paid, RawStatus: "2", Amount: 750, Currency: "USD", Identity: map[string]string{},
		},
		"testdata/rsa.http": {
			EventKey: "trade:S-99:failed", OrderRef: "20260301080000005", TradeNo: "S-99",
			Status: supplier.Failed, RawStatus: "FAIL", Final: true, Amount: 1999, Currency: "CNY",
			Identity: map[string]string{"account": "M-77"},
		},
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := dialect.FindAllStringSubmatch(string(readme), -1)
	if len(examples) != len(want) {
		t.Fatalf("%d dialects in the README, %d messages", len(examples), len(want))
	}
	for _, example := range examples {
		a := newAdapter(t, fromYAML(t, example[2]))
		var trace supplier.Trace
		got, err := a.Parse(suppliertest.Load(t, example[1]), &trace)
		if err != nil || !reflect.DeepEqual(got, want[example[1]]) {
			t.Errorf("%s: %v\n %+v, want\n %+v\n%+v", example[1], err, got, want[example[1]], trace.Steps)
		}
		for name, value := range a.Identity() {
			if got.Identity[name] != value {
				t.Errorf("%s: identity %s is %q, configured %q", example[1], name, got.Identity[name], value)
			}
		}
	}
}

func fromYAML(t *testing.T, text string) settings {
	t.Helper()
	var s settings
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	for name, value := range s {
		if path, ok := strings.CutPrefix(asText(value), "file:"); ok {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s[name] = string(content)
		}
	}
	return s
}

func asText(value any) string {
	text, _ := value.(string)
	return text
}

// said parses a GET that is signed with MD5 and the key of basic.
func said(t *testing.T, s settings, fields map[string]string) (supplier.Callback, error) {
	t.Helper()
	d := dialogue{format: "query", algorithm: "md5", key: "test-only-key", keyAppend: "test-only-key"}
	return newAdapter(t, s).Parse(d.request(d.sign(fields, nil)), nil)
}

func payment(changes map[string]string) map[string]string {
	fields := map[string]string{"order": "O-1", "trade": "T-1", "total": "19.99", "state": "OK"}
	maps.Copy(fields, changes)
	return fields
}

func TestStatusWordsMeanWhatTheSettingsSay(t *testing.T) {
	t.Parallel()
	more := basic.with(settings{"closed_values": []string{"SHUT"}, "paying_values": []string{"WAIT"}, "not_found_values": []string{"NONE"}})
	always := basic.with(settings{"status_field": nil, "paid_values": nil, "failed_values": nil})
	for _, c := range []struct {
		name   string
		s      settings
		state  string
		status supplier.Status
		final  bool
		key    string
	}{
		{"paid", basic, "OK", supplier.Paid, false, "trade:T-1:paid"},
		{
			"another word for paid is the same fact", basic.with(settings{"paid_values": []string{"OK", "DONE"}}), "DONE", supplier.Paid,
			false, "trade:T-1:paid",
		},
		{"failed", basic, "NO", supplier.Failed, true, "trade:T-1:failed"},
		{"closed", more, "SHUT", supplier.Closed, false, "trade:T-1:closed"},
		{"not yet", more, "WAIT", supplier.Other, false, "trade:T-1:other:WAIT"},
		{"not found", more, "NONE", supplier.Other, false, "trade:T-1:other:NONE"},
		{"unknown", basic, "WAIT", supplier.Unknown, false, "trade:T-1:unknown:WAIT"},
		{"another case", basic, "ok", supplier.Unknown, false, "trade:T-1:unknown:ok"},
		{"a space", basic, "OK ", supplier.Unknown, false, "trade:T-1:unknown:OK "},
		{"none", basic, "", supplier.Unknown, false, "trade:T-1:unknown:"},
		{"no status field", always, "NO", supplier.Paid, false, "trade:T-1:paid"},
	} {
		got, err := said(t, c.s, payment(map[string]string{"state": c.state}))
		if err != nil || got.Status != c.status || got.Final != c.final || got.EventKey != c.key {
			t.Errorf("%s: %v %+v", c.name, err, got)
		}
	}
	got, err := said(t, basic.with(settings{"trade_field": nil}), payment(nil))
	if err != nil || got.EventKey != "order:O-1:paid" || got.TradeNo != "" {
		t.Errorf("without a trade field: %v %+v", err, got)
	}
}

func TestWhatCannotBeUnderstoodIsKeptForPeople(t *testing.T) {
	t.Parallel()
	byMessage := basic.with(settings{"currency": nil, "currency_field": "cur"})
	for name, c := range map[string]struct {
		s       settings
		changes map[string]string
	}{
		"odd amount":               {basic, map[string]string{"total": "1e2"}},
		"no amount":                {basic, map[string]string{"total": ""}},
		"odd amount of a failure":  {basic, map[string]string{"total": "x", "state": "NO"}},
		"a fraction of a fen":      {basic, map[string]string{"total": "19.999"}},
		"major in a minor field":   {basic.with(settings{"amount_unit": "minor"}), nil},
		"unknown currency":         {byMessage, map[string]string{"cur": "RMB"}},
		"no currency":              {byMessage, nil},
		"no order":                 {basic, map[string]string{"order": ""}},
		"a payment without number": {basic, map[string]string{"trade": ""}},
		"a long order":             {basic, map[string]string{"order": strings.Repeat("1", maxText+1)}},
		"a long number":            {basic, map[string]string{"trade": strings.Repeat("云", maxText/3+1)}},
		"a long word":              {basic, map[string]string{"state": strings.Repeat("x", maxText+1)}},
	} {
		got, err := said(t, c.s, payment(c.changes))
		var unreadable *supplier.Unreadable
		if !errors.As(err, &unreadable) || unreadable.Kind != "malformed" || unreadable.Result != supplier.Malformed {
			t.Errorf("%s: %v %+v", name, err, got)
			continue
		}
		kept := unreadable.Callback
		if kept.Status != supplier.Other || kept.Final || len(kept.OrderRef) > maxText || len(kept.TradeNo) > maxText {
			t.Errorf("%s: kept %+v", name, kept)
		}
		if c.changes["order"] == "" && strings.Contains(name, "amount") && (kept.OrderRef != "O-1" || kept.TradeNo != "T-1") {
			t.Errorf("%s: people cannot find the order: %+v", name, kept)
		}
	}
	got, err := said(t, basic, payment(map[string]string{"total": "", "trade": "", "state": "NO"}))
	if err != nil || got.Status != supplier.Failed || got.EventKey != "order:O-1:failed" {
		t.Errorf("a failure needs neither sum nor number: %v %+v", err, got)
	}
	got, err = said(t, byMessage, payment(map[string]string{"cur": "jpy", "total": "1999"}))
	if err != nil || got.Amount != 1999 || got.Currency != "JPY" {
		t.Errorf("currency in lower case: %v %+v", err, got)
	}
	got, err = said(t, byMessage.with(settings{"currency": "CNY"}), payment(nil))
	if err != nil || got.Amount != 1999 || got.Currency != "CNY" {
		t.Errorf("the configured currency must be the default: %v %+v", err, got)
	}
}

func TestParametersComeFromOnePlaceOnly(t *testing.T) {
	t.Parallel()
	d := dialogue{format: "form", algorithm: "md5", key: "test-only-key", keyAppend: "test-only-key"}
	body := string(d.request(d.sign(payment(nil), nil)).Body)
	for _, c := range []struct {
		name, format, method, query, body string
		ok                                bool
	}{
		{"POST body", "form", "POST", "", body, true},
		{"GET query", "form", "GET", body, "", true},
		{"POST body", "query", "POST", "", body, true},
		{"GET query", "query", "GET", body, "", true},
		{"POST query", "form", "POST", body, "", false},
		{"GET body", "form", "GET", "", body, false},
		{"both", "form", "POST", "a=1", body, false},
		{"both", "form", "GET", body, "a=1", false},
		{"the same twice", "query", "POST", body, body, false},
		{"PUT", "form", "PUT", "", body, false},
		{"OPTIONS", "query", "OPTIONS", body, "", false},
		{"GET of JSON", "json", "GET", body, "", false},
		{"GET of XML", "xml", "GET", body, "", false},
		{"nothing", "form", "GET", "", "", false},
	} {
		a := newAdapter(t, basic.with(settings{"format": c.format}))
		req := &supplier.Request{Method: c.method, RawQuery: c.query, Body: []byte(c.body), Header: http.Header{}}
		got, err := a.Parse(req, nil)
		var refused *supplier.Refused
		if c.ok && (err != nil || got.OrderRef != "O-1") || !c.ok && !errors.As(err, &refused) {
			t.Errorf("%s, %s: %v %+v", c.format, c.name, err, got)
		}
	}
}

func TestAccountIsTheCode(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, basic)
	if a.Account() != "sortedparams:s1" || len(a.Identity()) != 0 {
		t.Errorf("%s %v", a.Account(), a.Identity())
	}
	a.Identity()["account"] = "changed"
	if len(a.Identity()) != 0 {
		t.Error("a caller changed the adapter")
	}
}

// A supplier that names the currency in its messages takes each; the others take one.
func TestCurrenciesThatASupplierTakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config
		takes string
	}{
		"one":   {config{Currency: "CNY"}, "true false"},
		"named": {config{CurrencyField: "currency"}, "true true"},
	} {
		a := &adapter{config: c.config}
		if got := fmt.Sprint(supplier.Takes(a, "CNY"), supplier.Takes(a, "USD")); got != c.takes {
			t.Errorf("%s: %s", name, got)
		}
	}
}
