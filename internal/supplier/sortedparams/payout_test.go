package sortedparams

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// payout is what the tests pay out. The holder's name must not be cut into other parameters.
var payout = supplier.Payout{
	Amount: 500, Currency: "CNY", NotifyURL: "https://pay.example.com/callback/s1",
	Payee: supplier.Payee{Kind: supplier.PayeeBankCard, Holder: "A & B&end=DONE", Number: "6222021234564711", Bank: "ICBC"},
}

// payoutCases are the answers about payouts; says makes one that names a payment of ours.
func payoutCases(says func(map[string]string) supplier.Exchange) []suppliertest.AnswerCase {
	about := func(fields map[string]string) supplier.Exchange {
		all := map[string]string{"order": suppliertest.PayoutNo, "out": suppliertest.PayoutNo}
		maps.Copy(all, fields)
		return says(all)
	}
	word := func(w string) supplier.Exchange { return about(map[string]string{"end": w}) }
	const pay, query = suppliertest.Payout, suppliertest.PayoutQuery
	return []suppliertest.AnswerCase{
		{Name: "done, without a sum", Op: pay, Answer: word("DONE"), State: "succeeded", Class: supplier.ClassOK},
		{Name: "processing", Op: pay, Answer: word("DOING"), State: "processing", Class: supplier.ClassOK},
		{Name: "refused", Op: pay, Answer: word("REFUSED"), State: "failed", Class: supplier.ClassRefused},
		{Name: "no such payout, of an order to pay it", Op: pay, Answer: word("NONE"), State: "unknown", Class: supplier.ClassUnknown},
		{
			Name: "another sum", Op: pay, Answer: about(map[string]string{"end": "DONE", "total": "5.01"}), State: "unknown",
			Class: supplier.ClassBadAnswer,
		},
		{
			Name: "another currency", Op: pay, Answer: about(map[string]string{"end": "DONE", "cur": "USD"}), State: "unknown",
			Class: supplier.ClassBadAnswer,
		},
		{
			Name: "another reference", Op: pay, Answer: about(map[string]string{"end": "DONE", "order": "P9"}), State: "unknown",
			Class: supplier.ClassBadAnswer,
		},
		{
			Name: "the refund of that number", Op: pay,
			Answer: says(map[string]string{"order": suppliertest.PayoutNo, "back": suppliertest.PayoutNo, "end": "DONE"}), State: "unknown",
			Class: supplier.ClassBadAnswer,
		},
		{
			Name: "another account's", Op: query, Answer: about(map[string]string{"end": "DONE", "mch": "M2"}), State: "unknown",
			Class: supplier.ClassBadAnswer,
		},
		{Name: "returned", Op: query, Answer: word("RETURNED"), State: "returned", Class: supplier.ClassOK},
		{Name: "no such payout", Op: query, Answer: word("NONE"), State: "not_found", Class: supplier.ClassOK},
		{
			Name: "a word of payments", Op: query, Answer: about(map[string]string{"state": "OK"}), State: "unknown",
			Class: supplier.ClassUnknown,
		},
		{
			Name: "signed text with another reading", Op: query, Answer: about(map[string]string{"end": "DOING", "remark": "x&end=DONE&zz="}),
			State: "unknown", Class: supplier.ClassBadAnswer,
		},
	}
}

// The supplier, written from the contract and not from the adapter, reads each request.
func TestRequestsOfPayoutsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"form", "query", "json", "xml"} {
		for _, algorithm := range []string{"md5", "hmac-sha256", "rsa-sha256"} {
			line := &suppliertest.Line{Reply: func(*http.Request,
				[]byte,
			) supplier.Exchange {
				return supplier.Exchange{Class: supplier.ClassTimeout}
			}}
			made, err := Kind.New("s1", asJSON(t, callable(format, algorithm, "json")), line)
			if err != nil {
				t.Fatal(err)
			}
			can, p := supplier.AbilitiesOf(made), payout
			p.No = "P1"
			if a, err := can.Payout(t.Context(), p); err != nil || a.State != supplier.PayoutUnknown ||
				a.Exchange.Class != supplier.ClassTimeout {
				t.Fatalf("%v %+v", err, a)
			}
			if a, err := can.PayoutQuery(t.Context(), p); err != nil || a.State != supplier.PayoutUnknown {
				t.Fatalf("%v %+v", err, a)
			}
			const account = `{"kind":"bank_card","holder":"A \u0026 B\u0026end=DONE","number":"6222021234564711","bank":"ICBC"}`
			for i, want := range []struct {
				path   string
				fields map[string]string
			}{
				{"/payout", map[string]string{
					"order": "P1", "out": "P1", "mch": "M1", "total": "5.00", "cur": "CNY", "payee": account,
					"notify_url": p.NotifyURL,
				}},
				{"/payouts", map[string]string{"order": "P1", "out": "P1", "mch": "M1"}},
			} {
				sent := line.Sent()[i]
				fields, err := readFields(format, &supplier.Request{
					Method: sent.Request.Method, RawQuery: ownQuery(format, sent.Request),
					Body: sent.Body,
				})
				if err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				sign := fields["sign"]
				delete(fields, "sign")
				checkSign(t, algorithm, fields, sign)
				delete(fields, "time")
				delete(fields, "nonce")
				if sent.Request.URL.Path != want.path || !maps.Equal(fields, want.fields) {
					t.Errorf("%s %s sends %v, want %v", format, sent.Request.URL.Path, fields, want.fields)
				}
				var read payee
				if text := fields["payee"]; text != "" && (json.Unmarshal([]byte(text), &read) != nil || supplier.Payee(read) != p.Payee) {
					t.Errorf("the payee is read as %+v", read)
				}
			}
		}
	}
}

func TestPayoutsThatTheSettingsDoNotTakeAreNotSent(t *testing.T) {
	t.Parallel()
	line := &suppliertest.Line{}
	can := supplier.AbilitiesOf(caller(t, callable("form", "md5", "json").with(settings{"currency": "CNY", "currency_field": nil}))(line))
	for _, c := range []struct {
		field  string
		change func(*supplier.Payout)
	}{
		{"payout_no", func(p *supplier.Payout) { p.No = "" }},
		{"payout_no", func(p *supplier.Payout) { p.No = "P1&total=1" }},
		{"payout_no", func(p *supplier.Payout) { p.No = strings.Repeat("1", maxText+1) }},
		{"currency", func(p *supplier.Payout) { p.Currency = "USD" }},
		{"currency", func(p *supplier.Payout) { p.Currency = "RMB" }},
		{"amount", func(p *supplier.Payout) { p.Amount = 0 }},
		{"amount", func(p *supplier.Payout) { p.Amount = -1 }},
		{"account", func(p *supplier.Payout) { p.Payee.Number = "" }},
	} {
		p := payout
		p.No = "P1"
		c.change(&p)
		for _, op := range []suppliertest.Op{suppliertest.Payout, suppliertest.PayoutQuery} {
			call := can.Payout
			if op == suppliertest.PayoutQuery {
				call = can.PayoutQuery
			}
			_, err := call(t.Context(), p)
			if f := supplier.AsField(err); f == nil || f.Field != c.field || strings.Contains(err.Error(), payout.Payee.Number) {
				t.Errorf("%s of %+v: %v, want the field %s", op, p, err, c.field)
			}
		}
	}
	if len(line.Sent()) != 0 {
		t.Errorf("%d requests were sent", len(line.Sent()))
	}
}

// A callback about a payout says which, and moves nothing, whatever words it has: the payout is
// queried.
func TestCallbacksAboutPayoutsOnlyNameThem(t *testing.T) {
	t.Parallel()
	d := theirs("form", "md5")
	a := newAdapter(t, callable("form", "md5", "json"))
	base := map[string]string{"out": "P1", "end": "DONE", "mch": "M1", "sign_type": "md5"}
	parse := func(change map[string]string) (supplier.Callback, error) {
		fields := maps.Clone(base)
		maps.Copy(fields, change)
		maps.DeleteFunc(fields, func(_, v string) bool { return v == "" })
		return a.Parse(d.request(d.sign(fields, nil)), nil)
	}
	want := supplier.Callback{
		EventKey: "payout:P1:DONE", OrderRef: "P1", Status: supplier.Other, RawStatus: "DONE", Identity: map[string]string{"account": "M1"},
	}
	for name, change := range map[string]map[string]string{
		"bare": {}, "with the reference": {"order": "P1"}, "with a sum": {"total": "5.00", "cur": "CNY"},
		"that says paid": {"state": "OK", "total": "5.00", "cur": "CNY"},
	} {
		if got, err := parse(change); err != nil || got.EventKey != want.EventKey || got.OrderRef != want.OrderRef ||
			got.Status != want.Status || got.RawStatus != want.RawStatus ||
			got.Amount != 0 || !maps.Equal(got.Identity, want.Identity) {
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
	if got, err := parse(map[string]string{"end": "RETURNED"}); err != nil || got.EventKey != "payout:P1:RETURNED" {
		t.Errorf("another fact: %v %+v", err, got)
	}
	for name, change := range map[string]map[string]string{
		"about two things":          {"order": "SO1"},
		"with another reading":      {"remark": "x&out=P2&zz="},
		"with a number that is cut": {"out": strings.Repeat("P", maxText+1)},
	} {
		if got, err := parse(change); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	if _, err := a.Parse(d.request(d.sign(base, func(string) string { return strings.Repeat("0", 32) })), nil); err == nil {
		t.Error("one that is not signed is read")
	}
	// Without a result it is a payment's, as ever; and so it is where no payouts are set.
	if got, err := parse(map[string]string{
		"end": "", "order": "SO1", "state": "OK", "trade": "T1", "total": "1.00",
		"cur": "CNY",
	}); err != nil || got.Status != supplier.Paid || got.OrderRef != "SO1" {
		t.Errorf("%v %+v", err, got)
	}
	if !slices.Equal(a.meaningful(), []string{"order", "trade", "total", "cur", "state", "mch"}) {
		t.Errorf("%v", a.meaningful())
	}
}

// Our own request for a payout, coming back, is neither a callback about it nor its answer.
func TestOurRequestForAPayoutIsNoAnswer(t *testing.T) {
	t.Parallel()
	var body []byte
	line := &suppliertest.Line{Reply: func(_ *http.Request, sent []byte) supplier.Exchange {
		body = sent
		return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: sent}
	}}
	a, err := Kind.New("s1", asJSON(t, callable("json", "md5", "json")), line)
	if err != nil {
		t.Fatal(err)
	}
	p := payout
	p.No = "P1"
	for range 2 {
		if got, err := supplier.AbilitiesOf(a).Payout(t.Context(), p); err != nil || got.State != supplier.PayoutUnknown {
			t.Errorf("%v %+v", err, got)
		}
	}
	if got, err := a.Parse(post(string(body)), nil); err == nil && got.Status != supplier.Unknown {
		t.Errorf("our own request is read as %+v", got)
	}
}
