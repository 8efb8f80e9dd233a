package sortedparams

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// ownKey is ours, with rsa-sha256.
var ownKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func privatePEM(key *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// callable are settings with all addresses.
func callable(format, algorithm, answerFormat string) settings {
	s := full(format, algorithm, "any").with(settings{
		"query_url": "https://s.example/query", "close_url": "https://s.example/close", "pay_url": "https://s.example/pay?v=1",
		"pay_value_field": "link", "answer_format": answerFormat, "currency": nil, "currency_field": "cur",
		"closed_values": []string{"SHUT"}, "paying_values": []string{"WAIT"}, "not_found_values": []string{"NONE"},
		"refund_url": "https://s.example/refund", "refund_query_url": "https://s.example/refunds", "refund_no_field": "back",
		"refund_amount_field": "sum",
		"payout_url":          "https://s.example/payout", "payout_query_url": "https://s.example/payouts", "payout_no_field": "out",
		"payee_field":  "payee",
		"result_field": "end", "success_values": []string{"DONE"}, "failure_values": []string{"REFUSED"},
		"processing_values": []string{"DOING"}, "returned_values": []string{"RETURNED"},
	})
	if algorithm == "rsa-sha256" {
		s["private_key"] = privatePEM(ownKey())
	}
	return s
}

// caller makes adapters of the settings whose calls go out through a client. They have
// no key of ours.
func caller(tb testing.TB, s settings) func(supplier.Client) supplier.Adapter {
	tb.Helper()
	return func(out supplier.Client) supplier.Adapter {
		a := newAdapter(tb, s)
		a.calls = &calls{adapter: a, out: out, own: suppliertest.NoSigner{}}
		return a
	}
}

// theirs is the supplier's side of the settings of callable.
func theirs(format, algorithm string) dialogue {
	d := dialogue{
		format: format, algorithm: algorithm, key: "test-only-key", keyAppend: "&key=test-only-key",
		exclude: []string{"sign_type"}, skipEmpty: true, literal: []string{"total"},
	}
	if algorithm == "rsa-sha256" {
		d.keyAppend, d.rsa = "", testKeys()[0]
	}
	return d
}

func answerWith(d dialogue, fields map[string]string, twice ...string) supplier.Exchange {
	return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: d.request(fields, twice...).Body}
}

const link = "https://s.example/p?mch=1&order=9&state=NO"

func genuine(d dialogue, op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
	fields := map[string]string{"order": cmp.Or(c.OrderRef, suppliertest.Reference), "memo": "", "sign_type": d.algorithm}
	if c.Account != "" {
		fields["mch"] = c.Account
	}
	switch op {
	case suppliertest.Pay:
		fields["state"], fields["link"] = cmp.Or(c.Status, "WAIT"), link
	case suppliertest.Query:
		fields["state"], fields["trade"], fields["total"], fields["cur"] = cmp.Or(c.Status, "OK"), cmp.Or(c.TradeNo, "T-1"),
			cmp.Or(c.Amount, "19.99"), "CNY"
	case suppliertest.Close:
		fields["state"] = cmp.Or(c.Status, "SHUT")
	case suppliertest.Payout, suppliertest.PayoutQuery:
		fields["order"] = cmp.Or(c.OrderRef, cmp.Or(c.PayoutNo, suppliertest.PayoutNo))
		fields["out"], fields["end"], fields["total"], fields["trade"] = cmp.Or(c.PayoutNo, suppliertest.PayoutNo),
			cmp.Or(c.Status, "DONE"), cmp.Or(c.Amount, "5.00"), "TP-1"
		delete(fields, map[string]string{"PayoutNo": "out", "Status": "end"}[c.Without])
	default:
		fields["back"], fields["end"], fields["sum"], fields["trade"] = cmp.Or(c.RefundNo, suppliertest.RefundNo), cmp.Or(c.Status, "DONE"),
			cmp.Or(c.Amount, "5.00"), "TR-1"
		delete(fields, map[string]string{"RefundNo": "back", "Amount": "none", "Status": "end"}[c.Without])
	}
	delete(fields, map[string]string{
		"OrderRef": "order", "TradeNo": "trade", "Amount": "total", "Currency": "cur",
		"Status": "state",
	}[c.Without])
	signed := d.sign(fields, c.Tamper)
	if c.Duplicate {
		return answerWith(d, signed, "order", "O-2")
	}
	return answerWith(d, signed)
}

func TestCallsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, algorithm, answer string }{
		{"form", "md5", "json"},
		{"query", "hmac-sha256", "form"},
		{"json", "hmac-sha256", "xml"},
		{"xml", "rsa-sha256", "json"},
		{"form", "rsa-sha256", "form"},
		{"xml", "md5", "xml"},
	} {
		t.Run(c.format+" "+c.algorithm+" "+c.answer, func(t *testing.T) {
			suppliertest.RunAbilities(t, callSuite(t, c.format, c.algorithm, c.answer))
		})
	}
}

func callSuite(t *testing.T, format, algorithm, answer string) suppliertest.Abilities {
	d := theirs(answer, algorithm)
	s := callable(format, algorithm, answer)
	stranger := settings{"key": "another-key"}
	if algorithm == "rsa-sha256" {
		stranger = settings{"public_key": publicPEM(testKeys()[1])}
	}
	const pay, query, closing = suppliertest.Pay, suppliertest.Query, suppliertest.Close
	says := func(fields map[string]string) supplier.Exchange {
		all := map[string]string{"order": suppliertest.Reference}
		maps.Copy(all, fields)
		return answerWith(d, d.sign(all, nil))
	}
	word := func(w string) supplier.Exchange { return says(map[string]string{"state": w}) }
	result := func(w string) supplier.Exchange {
		return says(map[string]string{"back": suppliertest.RefundNo, "end": w})
	}
	ours := map[string]string{"account": "M1"}
	var signatures sync.Map // of the genuine answers: RSA is slow
	return suppliertest.Abilities{
		New: caller(t, s), Stranger: caller(t, s.with(stranger)),
		Payment: supplier.Payment{
			Subject: "会员 a+b & more <1>", Amount: 1999, Currency: "CNY",
			NotifyURL: "https://pay.example.com/callback/s1",
		},
		Answer: func(op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
			if !reflect.DeepEqual(c, suppliertest.Change{}) {
				return genuine(d, op, c)
			}
			known, ok := signatures.Load(op)
			if !ok {
				known = genuine(d, op, c)
				signatures.Store(op, known)
			}
			x := known.(supplier.Exchange)
			x.Header, x.Body = http.Header{}, bytes.Clone(x.Body)
			return x
		},
		Has: map[suppliertest.Op][]string{
			pay:                      {"OrderRef", "Status", "Account", "Duplicate"},
			query:                    {"OrderRef", "TradeNo", "Amount", "Currency", "Status", "Account", "Duplicate"},
			closing:                  {"OrderRef", "Status", "Account", "Duplicate"},
			suppliertest.Payout:      {"OrderRef", "PayoutNo", "Amount", "Status", "Account", "Duplicate"},
			suppliertest.PayoutQuery: {"OrderRef", "PayoutNo", "Amount", "Status", "Account", "Duplicate"},
			suppliertest.Refund:      {"OrderRef", "RefundNo", "Status", "Account", "Duplicate"}, suppliertest.RefundQuery: {
				"OrderRef",
				"RefundNo", "Status", "Account", "Duplicate",
			},
		},
		Refund: supplier.Refund{Amount: 500, Total: 1999, Currency: "CNY", Reason: "broken"},
		Refunded: map[suppliertest.Op]supplier.RefundAnswer{
			suppliertest.Refund:      {State: supplier.RefundSucceeded, SupplierNo: "TR-1", Word: "DONE"},
			suppliertest.RefundQuery: {State: supplier.RefundSucceeded, SupplierNo: "TR-1", Word: "DONE"},
		},
		Payout: payout,
		PaidOut: map[suppliertest.Op]supplier.PayoutAnswer{
			suppliertest.Payout:      {State: supplier.PayoutSucceeded, SupplierNo: "TP-1", Word: "DONE"},
			suppliertest.PayoutQuery: {State: supplier.PayoutSucceeded, SupplierNo: "TP-1", Word: "DONE"},
		},
		Signed: func(_ suppliertest.Op, body []byte) supplier.Exchange {
			return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: body}
		},
		Started: supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: link, Word: "WAIT"},
		Says: supplier.Callback{
			EventKey: "trade:T-1:paid", OrderRef: suppliertest.Reference, TradeNo: "T-1", Status: supplier.Paid, RawStatus: "OK",
			Amount: 1999, Currency: "CNY", Identity: ours,
		},
		Closed: supplier.Callback{
			EventKey: "order:" + suppliertest.Reference + ":closed", OrderRef: suppliertest.Reference, Status: supplier.Closed,
			RawStatus: "SHUT", Identity: ours,
		},
		Cases: append(payoutCases(says), []suppliertest.AnswerCase{
			{Name: "failed", Op: query, Answer: word("NO"), State: "failed", Class: supplier.ClassOK},
			{Name: "closed", Op: query, Answer: word("SHUT"), State: "closed", Class: supplier.ClassOK},
			{Name: "paying", Op: query, Answer: word("WAIT"), State: "paying", Class: supplier.ClassOK},
			{Name: "not found", Op: query, Answer: word("NONE"), State: "not_found", Class: supplier.ClassOK},
			{Name: "another case", Op: query, Answer: word("wait"), State: "unknown", Class: supplier.ClassUnknown},
			{Name: "paid, the account named", Op: query, Answer: says(map[string]string{
				"state": "OK", "trade": "T-1", "total": "19.99",
				"cur": "CNY", "mch": "M1",
			}), State: "paid", Class: supplier.ClassOK},
			{Name: "paid in an unknown currency", Op: query, Answer: says(map[string]string{
				"state": "OK", "trade": "T-1", "total": "19.99",
				"cur": "RMB",
			}), State: "unknown", Class: supplier.ClassBadAnswer},
			{
				Name: "paid, money of another account", Op: query,
				Answer: says(map[string]string{"state": "OK", "trade": "T-1", "total": "19.99", "cur": "CNY", "mch": "M2"}), State: "paid",
				Class: supplier.ClassOK,
			},
			{
				Name: "not found by another account", Op: query, Answer: says(map[string]string{"state": "NONE", "mch": "M2"}),
				State: "unknown", Class: supplier.ClassBadAnswer,
			},
			{
				Name: "signed text with another reading", Op: query,
				Answer: says(map[string]string{"state": "WAIT", "remark": "x&state=OK&zz="}), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{Name: "still paying", Op: closing, Answer: word("WAIT"), State: "paying", Class: supplier.ClassRefused},
			{
				Name: "paid", Op: closing, Answer: says(map[string]string{"state": "OK", "trade": "T-1", "total": "19.99", "cur": "CNY"}),
				State: "unknown", Class: supplier.ClassRefused,
			},
			{Name: "failed", Op: closing, Answer: word("NO"), State: "unknown", Class: supplier.ClassRefused},
			{Name: "not found", Op: closing, Answer: word("NONE"), State: "not_found", Class: supplier.ClassRefused},
			{Name: "processing", Op: suppliertest.Refund, Answer: result("DOING"), State: "processing", Class: supplier.ClassOK},
			{Name: "refused", Op: suppliertest.Refund, Answer: result("REFUSED"), State: "failed", Class: supplier.ClassRefused},
			{
				Name: "no such refund, of an order to pay it", Op: suppliertest.Refund, Answer: result("NONE"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{Name: "another sum", Op: suppliertest.Refund, Answer: says(map[string]string{
				"back": suppliertest.RefundNo, "end": "DONE",
				"sum": "5.01",
			}), State: "unknown", Class: supplier.ClassBadAnswer},
			{
				Name: "no sum", Op: suppliertest.Refund, Answer: says(map[string]string{"back": suppliertest.RefundNo, "end": "DONE"}),
				State: "succeeded", Class: supplier.ClassOK,
			},
			{Name: "returned", Op: suppliertest.RefundQuery, Answer: result("RETURNED"), State: "returned", Class: supplier.ClassOK},
			{Name: "no such refund", Op: suppliertest.RefundQuery, Answer: result("NONE"), State: "not_found", Class: supplier.ClassOK},
			{
				Name: "a payment's answer", Op: suppliertest.RefundQuery, Answer: word("OK"), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{
				Name: "signed text with another reading", Op: suppliertest.RefundQuery,
				Answer: says(map[string]string{"back": suppliertest.RefundNo, "end": "DOING", "remark": "x&end=DONE&zz="}),
				State:  "unknown", Class: supplier.ClassBadAnswer,
			},
			{Name: "refused", Op: pay, Answer: word("NO"), State: "refused", Class: supplier.ClassRefused},
			{
				Name: "refused, another's", Op: pay, Answer: says(map[string]string{"state": "NO", "order": "O-2"}), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{
				Name: "refused for another account", Op: pay, Answer: says(map[string]string{"state": "NO", "mch": "M2"}), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{Name: "nothing to pay with", Op: pay, Answer: word("WAIT"), State: "unknown", Class: supplier.ClassBadAnswer},
			{
				Name: "too much to pay with", Op: pay,
				Answer: says(map[string]string{"state": "WAIT", "link": strings.Repeat("x", maxValue+1)}), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{Name: "no word", Op: pay, Answer: says(map[string]string{"link": link}), State: "unknown", Class: supplier.ClassUnknown},
			{
				Name: "already closed", Op: pay, Answer: says(map[string]string{"state": "SHUT", "link": link}), State: "unknown",
				Class: supplier.ClassOK,
			},
			{Name: "already paid", Op: pay, Answer: says(map[string]string{
				"state": "OK", "trade": "T-1", "total": "19.99", "cur": "CNY",
				"link": link,
			}), State: "unknown", Class: supplier.ClassOK},
			{
				Name: "not found", Op: pay, Answer: says(map[string]string{"state": "NONE", "link": link}), State: "unknown",
				Class: supplier.ClassOK,
			},
		}...),
		Secrets: []string{"test-only-key", privatePEM(ownKey())},
		Key: func(r *http.Request, body []byte) string {
			fields, err := readFields(format, &supplier.Request{Method: r.Method, RawQuery: ownQuery(format, r), Body: body})
			if err != nil {
				t.Error(err)
			}
			for _, name := range []string{"time", "nonce", "sign"} {
				delete(fields, name)
			}
			return r.Method + " " + r.URL.Path + "\n" + supplier.JoinPairs(fields, slices.Sorted(maps.Keys(fields)))
		},
	}
}

func ownQuery(format string, r *http.Request) string {
	if format == "query" {
		return r.URL.RawQuery
	}
	return ""
}

// The supplier, written from the contract and not from the adapter, reads each request.
func TestRequestsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	expires := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	payment := supplier.Payment{
		Reference: "SO1_2", OrderNo: "SO1", Subject: "A & B <1>", Amount: 1999, Currency: "CNY", Method: "qr",
		NotifyURL: "https://pay.example.com/callback/s1", ExpiresAt: expires,
	}
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
			can := supplier.AbilitiesOf(made)
			for range 2 {
				if s, err := can.Start(t.Context(), payment); err != nil || s.State != supplier.StartUnknown ||
					s.Exchange.Class != supplier.ClassTimeout {
					t.Fatalf("%v %+v", err, s)
				}
			}
			for _, call := range []func(context.Context, supplier.Ref) (supplier.Answer, error){can.Query, can.Close} {
				if a, err := call(t.Context(), supplier.Ref{Reference: "SO1_2"}); err != nil || a.State != supplier.AnswerUnknown {
					t.Fatalf("%v %+v", err, a)
				}
			}
			start := map[string]string{
				"order": "SO1_2", "mch": "M1", "total": "19.99", "cur": "CNY", "subject": "A ＆ B <1>",
				"notify_url": payment.NotifyURL, "expires_at": "1772355600",
			}
			call := map[string]string{"order": "SO1_2", "mch": "M1"}
			nonces := map[string]bool{}
			for i, want := range []struct {
				path   string
				fields map[string]string
			}{{"/pay", start}, {"/pay", start}, {"/query", call}, {"/close", call}} {
				sent := line.Sent()[i]
				r := sent.Request
				if r.URL.Host != "s.example" || r.URL.Path != want.path || (r.Method == http.MethodGet) != (format == "query") {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				// The address's own parameters stay, and are not signed.
				if strings.HasSuffix(want.path, "pay") != (r.URL.Query().Get("v") == "1") {
					t.Errorf("the address is %s", r.URL)
				}
				own := strings.TrimPrefix(strings.TrimPrefix(ownQuery(format, r), "v=1"), "&")
				fields, err := readFields(format, &supplier.Request{Method: r.Method, RawQuery: own, Body: sent.Body})
				if err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				sign := fields["sign"]
				delete(fields, "sign")
				checkSign(t, algorithm, fields, sign)
				moment, nonce := fields["time"], fields["nonce"]
				delete(fields, "time")
				delete(fields, "nonce")
				if !maps.Equal(fields, want.fields) {
					t.Errorf("%s %s sends %v, want %v", format, want.path, fields, want.fields)
				}
				if !regexp.MustCompile(`^1[0-9]{9}$`).MatchString(moment) || !regexp.MustCompile(`^[0-9A-Za-z]{16}$`).MatchString(nonce) ||
					nonces[nonce] {
					t.Errorf("time %q, nonce %q", moment, nonce)
				}
				nonces[nonce] = true
			}
		}
	}
}

func checkSign(t *testing.T, algorithm string, fields map[string]string, sign string) {
	t.Helper()
	d := theirs("form", algorithm)
	if algorithm != "rsa-sha256" {
		if want := d.sign(fields, nil)["sign"]; sign != want {
			t.Errorf("signed %s, want %s", sign, want)
		}
		return
	}
	d.rsa = ownKey()
	if want := d.sign(fields, nil)["sign"]; sign != want {
		t.Errorf("signed %s, want %s", sign, want)
	}
	if _, err := base64.StdEncoding.DecodeString(sign); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreSignedInTheCaseOfTheSettings(t *testing.T) {
	t.Parallel()
	for signCase, upper := range map[string]bool{"upper": true, "lower": false, "any": false} {
		a := newAdapter(t, callable("form", "md5", "json").with(settings{"sign_case": signCase}))
		sign, err := (&calls{adapter: a}).sign([]byte("a=1"))
		if err != nil || (strings.ToUpper(sign) == sign) != upper || !a.holds(sign, []byte("a=1")) {
			t.Errorf("%s: %v %s", signCase, err, sign)
		}
	}
}

// A request of ours that comes back, at the callback address or as an answer, confirms nothing.
func TestOurRequestIsNoCallbackAndNoAnswer(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"md5", "hmac-sha256", "rsa-sha256"} {
		var body []byte
		line := &suppliertest.Line{Reply: func(_ *http.Request, sent []byte) supplier.Exchange {
			body = sent
			return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: sent}
		}}
		a, err := Kind.New("s1", asJSON(t, callable("json", algorithm, "json")), line)
		if err != nil {
			t.Fatal(err)
		}
		can := supplier.AbilitiesOf(a)
		payment := supplier.Payment{Reference: "SO1", Subject: "x&state=OK&trade=T-9&zz=", Amount: 1999, Currency: "CNY"}
		s, err := can.Start(t.Context(), payment)
		if err != nil || s.State != supplier.StartUnknown {
			t.Errorf("%s: %v %+v", algorithm, err, s)
		}
		if got, err := a.Parse(post(string(body)), nil); err == nil && got.Status != supplier.Unknown {
			t.Errorf("%s: our own request is read as %+v", algorithm, got)
		}
		if got, err := can.Query(t.Context(), supplier.Ref{Reference: "SO1"}); err != nil || got.State != supplier.AnswerUnknown {
			t.Errorf("%s: %v %+v", algorithm, err, got)
		}
	}
}

func TestOperatorsSeeNeitherKeyNorSignature(t *testing.T) {
	t.Parallel()
	s := callable("query", "md5", "json").with(settings{"query_url": "https://s.example/query?token=hidden"})
	line := &suppliertest.Line{Reply: func(*http.Request,
		[]byte,
	) supplier.Exchange {
		return supplier.Exchange{Class: supplier.ClassTimeout}
	}}
	got, err := supplier.AbilitiesOf(caller(t, s)(line)).Query(t.Context(), supplier.Ref{Reference: "SO1"})
	kept := string(got.Exchange.Request)
	if err != nil || !strings.HasPrefix(kept, "GET /query\n\nmch=M1&nonce=") || !strings.Contains(kept, "&order=SO1&time=") ||
		strings.Contains(kept, "sign") || strings.Contains(kept, "hidden") {
		t.Errorf("%v %q", err, kept)
	}
	if sent := line.Sent()[0].Request.URL; sent.Query().Get("token") != "hidden" || sent.Query().Get("sign") == "" {
		t.Errorf("sent to %s", sent)
	}
}

func TestPaymentsThatTheSettingsDoNotTakeAreNotSent(t *testing.T) {
	t.Parallel()
	good := supplier.Payment{Reference: "SO1", Amount: 1, Currency: "CNY"}
	line := &suppliertest.Line{}
	one := callable("form", "md5", "json").with(settings{"currency": "CNY", "currency_field": nil, "pay_kind": "redirect"})
	for _, c := range []struct {
		field  string
		change func(*supplier.Payment)
	}{
		{"method", func(p *supplier.Payment) { p.Method = supplier.MethodQR }},
		{"method", func(p *supplier.Payment) { p.Method = supplier.MethodApp }},
		{"currency", func(p *supplier.Payment) { p.Currency = "USD" }},
		{"currency", func(p *supplier.Payment) { p.Currency = "RMB" }},
		{"amount", func(p *supplier.Payment) { p.Amount = 0 }},
		{"order_no", func(p *supplier.Payment) { p.Reference = "SO1&total=1" }},
		{"order_no", func(p *supplier.Payment) { p.Reference = strings.Repeat("1", maxText+1) }},
		{"order_no", func(p *supplier.Payment) { p.Reference = "" }},
	} {
		p := good
		c.change(&p)
		_, err := supplier.AbilitiesOf(caller(t, one)(line)).Start(t.Context(), p)
		if f := supplier.AsField(err); f == nil || f.Field != c.field {
			t.Errorf("%+v: %v, want the field %s", p, err, c.field)
		}
	}
	for _, call := range []func(context.Context, supplier.Ref) (supplier.Answer, error){
		supplier.AbilitiesOf(caller(t, one)(line)).Query, supplier.AbilitiesOf(caller(t, one)(line)).Close,
	} {
		if _, err := call(t.Context(), supplier.Ref{Reference: "a&b"}); supplier.AsField(err) == nil {
			t.Error(err)
		}
	}
	if len(line.Sent()) != 0 {
		t.Errorf("%d requests were sent", len(line.Sent()))
	}
}

func TestStartIsAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	d := theirs("json", "md5")
	s := callable("form", "md5", "json").with(settings{
		"amount_unit": "minor", "currency": "JPY", "currency_field": nil,
		"pay_kind": "redirect",
	})
	line := &suppliertest.Line{Reply: func(*http.Request, []byte) supplier.Exchange {
		return answerWith(d, d.sign(map[string]string{"order": "SO1", "state": "WAIT", "link": link}, nil))
	}}
	got, err := supplier.AbilitiesOf(caller(t, s)(line)).Start(t.Context(), supplier.Payment{
		Reference: "SO1", OrderNo: "SO1", Amount: 1999,
		Currency: "JPY", Method: "redirect",
	})
	if err != nil || got.State != supplier.Accepted || got.Kind != supplier.ValueRedirect || got.Value != link {
		t.Errorf("%v %+v", err, got)
	}
	body := string(line.Sent()[0].Body)
	for _, part := range []string{"total=1999", "currency=JPY", "subject=SO1"} {
		if !slices.Contains(strings.Split(body, "&"), part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	if strings.Contains(body, "notify_url") || strings.Contains(body, "expires_at") {
		t.Errorf("what is not given is sent: %s", body)
	}
}

func TestAbilitiesAreThoseOfTheAddresses(t *testing.T) {
	t.Parallel()
	whole := callable("form", "md5", "json")
	for name, c := range map[string]struct {
		s                 settings
		pay, query, close bool
	}{
		"all":        {whole, true, true, true},
		"none":       {basic, false, false, false},
		"query only": {whole.with(settings{"pay_url": nil, "pay_value_field": nil, "close_url": nil}), false, true, false},
		"close only": {whole.with(settings{"pay_url": nil, "pay_value_field": nil, "query_url": nil}), false, false, true},
		"pay only":   {whole.with(settings{"close_url": nil, "query_url": nil}), true, false, false},
	} {
		a, err := Kind.New("s1", asJSON(t, c.s), &suppliertest.Line{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		can := supplier.AbilitiesOf(a)
		if (can.Payer != nil) != c.pay || (can.Querier != nil) != c.query || (can.Closer != nil) != c.close {
			t.Errorf("%s: %+v", name, can)
		}
		if can := supplier.AbilitiesOf(newAdapter(t, c.s)); !reflect.DeepEqual(can, supplier.Abilities{}) {
			t.Errorf("%s: nothing could send the calls: %+v", name, can)
		}
	}
}

func TestSettingsOfTheReadmeCanDoAllCalls(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(readme), "```yaml\n# MD5 both ways")
	example, _, closed := strings.Cut(example, "```")
	if !found || !closed {
		t.Fatal("the README has no such example")
	}
	a, err := Kind.New("s1", asJSON(t, fromYAML(t, "#"+example)), &suppliertest.Line{})
	if err != nil {
		t.Fatal(err)
	}
	if can := supplier.AbilitiesOf(a); can.Payer == nil || can.Querier == nil || can.Closer == nil || can.Refunder == nil ||
		can.Payouter == nil || can.PayoutRepeat {
		t.Errorf("%+v", can)
	}
}

// ofRefunds leaves out the settings of refunds and payouts.
var ofRefunds = settings{
	"refund_url": "", "refund_query_url": "", "refund_no_field": "", "refund_amount_field": "", "result_field": "",
	"payout_url": "", "payout_query_url": "", "payout_no_field": "", "payee_field": "",
	"success_values": []string{}, "failure_values": []string{}, "processing_values": []string{}, "returned_values": []string{},
}

func TestWrongSettingsOfCallsNameTheField(t *testing.T) {
	t.Parallel()
	whole := callable("form", "md5", "json")
	byRSA := callable("form", "rsa-sha256", "json")
	for name, c := range map[string]struct {
		field string
		s     settings
	}{
		"no address":                 {"close_url", whole.with(settings{"close_url": "s.example/close"})},
		"an address with a password": {"pay_url", whole.with(settings{"pay_url": "https://u:p@s.example/"})},
		"an address with a fragment": {"query_url", whole.with(settings{"query_url": "https://s.example/#a"})},
		"an answer without a state": {
			"status_field",
			basic.with(settings{"status_field": nil, "paid_values": nil, "failed_values": nil, "query_url": "https://s.example/q"}),
		},
		"nothing to pay with":              {"pay_value_field", whole.with(settings{"pay_value_field": nil})},
		"a value without a start":          {"pay_url", whole.with(settings{"pay_url": nil})},
		"a kind without a start":           {"pay_url", whole.with(settings{"pay_url": nil, "pay_value_field": nil, "pay_kind": "qr"})},
		"an unknown kind":                  {"pay_kind", whole.with(settings{"pay_kind": "form"})},
		"an unknown format":                {"answer_format", whole.with(settings{"answer_format": "query"})},
		"no word accepts":                  {"paying_values", whole.with(settings{"paying_values": nil})},
		"no word confirms a close":         {"closed_values", whole.with(settings{"closed_values": nil})},
		"an unsigned value":                {"pay_value_field", whole.with(settings{"pay_value_field": "sign_type"})},
		"the signature as a value":         {"pay_value_field", whole.with(settings{"pay_value_field": "sign"})},
		"the state as a value":             {"pay_value_field", whole.with(settings{"pay_value_field": "state"})},
		"an order called time":             {"order_field", whole.with(settings{"order_field": "time"})},
		"an account called nonce":          {"account_field", whole.with(settings{"account_field": "nonce"})},
		"a sum called subject":             {"amount_field", whole.with(settings{"amount_field": "subject"})},
		"a sum called like the order":      {"amount_field", whole.with(settings{"amount_field": "order"})},
		"a currency called like the order": {"currency_field", whole.with(settings{"currency_field": "order"})},
		"a signature called time":          {"sign_field", whole.with(settings{"sign_field": "time"})},
		"RSA without a key of ours":        {"private_key", byRSA.with(settings{"private_key": nil})},
		"no key":                           {"private_key", byRSA.with(settings{"private_key": "secret text"})},
		"the key of the other side":        {"public_key", byRSA.with(settings{"private_key": privatePEM(testKeys()[0])})},
		"refunds without a query":          {"refund_query_url", whole.with(settings{"refund_query_url": nil})},
		"a query of refunds alone":         {"refund_url", whole.with(settings{"refund_url": nil})},
		"refunds without a number":         {"refund_no_field", whole.with(settings{"refund_no_field": nil})},
		"no word of success":               {"success_values", whole.with(settings{"success_values": nil})},
		"a result called like the state":   {"result_field", whole.with(settings{"result_field": "state"})},
		"a result that is not signed":      {"result_field", whole.with(settings{"result_field": "sign_type"})},
		"a number called like its result":  {"result_field", whole.with(settings{"result_field": "back"})},
		"a refund called nonce":            {"refund_no_field", whole.with(settings{"refund_no_field": "nonce"})},
		"one word twice":                   {"failure_values", whole.with(settings{"failure_values": []string{"DONE"}})},
		"an empty word":                    {"returned_values", whole.with(settings{"returned_values": []string{""}})},
		"payouts without a query":          {"payout_query_url", whole.with(settings{"payout_query_url": nil})},
		"a query of payouts alone":         {"payout_url", whole.with(settings{"payout_url": nil})},
		"payouts without a number":         {"payout_no_field", whole.with(settings{"payout_no_field": nil})},
		"payouts to nobody":                {"payee_field", whole.with(settings{"payee_field": nil})},
		"a payout called like the order":   {"payout_no_field", whole.with(settings{"payout_no_field": "order"})},
		"a payout called like a refund":    {"payout_no_field", whole.with(settings{"payout_no_field": "back"})},
		"a payout that is not signed":      {"payout_no_field", whole.with(settings{"payout_no_field": "sign_type"})},
		"a payee called like the payout":   {"payee_field", whole.with(settings{"payee_field": "out"})},
		"a payee called like a refund":     {"payee_field", whole.with(settings{"payee_field": "sum"})},
		"a payee called nonce":             {"payee_field", whole.with(settings{"payee_field": "nonce"})},
		"a payee called notify_url":        {"payee_field", whole.with(settings{"payee_field": "notify_url"})},
		"payout at no address":             {"payout_url", whole.with(settings{"payout_url": "s.example"})},
		"a payout without a result": {
			"result_field",
			whole.with(settings{
				"result_field": nil, "refund_url": nil, "refund_query_url": nil, "refund_no_field": nil,
				"refund_amount_field": nil,
			}),
		},
		"words of nothing":       {"refund_url", whole.with(ofRefunds).with(settings{"failure_values": []string{"X"}})},
		"a private key with MD5": {"private_key", whole.with(settings{"private_key": privatePEM(ownKey())})},
	} {
		_, err := makeAdapter(c.s)
		if f := supplier.AsField(err); f == nil || f.Field != c.field || f.Problem == "" {
			t.Errorf("%s: %v, want the field %s", name, err, c.field)
		} else if strings.Contains(f.Error(), "test-only-key") || strings.Contains(f.Error(), "secret text") ||
			strings.Contains(f.Error(), "PRIVATE KEY") {
			t.Errorf("%s: a key shows: %v", name, f)
		}
	}
	// The names of a start are free where none is made.
	if _, err := makeAdapter(whole.with(settings{"pay_url": nil, "pay_value_field": nil, "amount_field": "subject"})); err != nil {
		t.Error(err)
	}
	if _, err := makeAdapter(byRSA.with(settings{
		"pay_url": nil, "pay_value_field": nil, "query_url": nil, "close_url": nil,
		"private_key": nil,
	}).with(ofRefunds)); err != nil {
		t.Errorf("callbacks alone need no key of ours: %v", err)
	}
	if !slices.ContainsFunc(slices.Collect(Kind.Secrets()), func(f supplier.Field) bool { return f.Name == "private_key" && f.PEM }) {
		t.Error("private_key is not sealed")
	}
}

func TestSettingsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"md5", "rsa-sha256"} {
		t.Run(algorithm, func(t *testing.T) {
			d, whole := theirs("form", algorithm), callable("form", algorithm, "json")
			bare, added := settings{}, settings{}
			for name, value := range whole {
				if strings.HasSuffix(name, "_url") || strings.HasPrefix(name, "pay_") || name == "answer_format" || name == "private_key" ||
					ofRefunds[name] != nil {
					added[name] = value
				} else {
					bare[name] = value
				}
			}
			const query = "https://s.example/query"
			wrong := map[string][]map[string]any{
				"query_url":       {{"query_url": "s.example"}},
				"pay_url":         {{"pay_value_field": "link"}, {"pay_kind": "qr"}},
				"pay_kind":        {{"pay_kind": "form"}},
				"answer_format":   {{"answer_format": "query"}},
				"pay_value_field": {added.with(settings{"pay_value_field": nil}), added.with(settings{"pay_value_field": "sign"})},
				"closed_values":   {added.with(settings{"closed_values": []string{}})},
			}
			if algorithm == "rsa-sha256" {
				wrong["private_key"] = []map[string]any{{"query_url": query}, {"query_url": query, "private_key": "canary"}}
				wrong["public_key"] = []map[string]any{added.with(settings{"private_key": privatePEM(testKeys()[0])})}
			} else {
				wrong["private_key"] = []map[string]any{{"private_key": privatePEM(ownKey())}}
			}
			suppliertest.RunSettings(t, suppliertest.Settings{
				Kind: Kind, Bare: bare, Calls: added, WrongCalls: wrong,
				Wrong: []map[string]any{
					{"order_field": ""},
					{"algorithm": "sha1"},
					{"format": "yaml"},
					{"sign_case": "mixed"},
					{"kee": "x"},
					{"reply": map[string]string{"success": "fail"}},
				},
				Message: d.request(d.sign(map[string]string{
					"order": "O-1", "trade": "T-1", "total": "19.99", "cur": "CNY", "mch": "M1",
					"state": "OK", "sign_type": algorithm,
				}, nil)),
				Want: supplier.Callback{
					EventKey: "trade:T-1:paid", OrderRef: "O-1", TradeNo: "T-1", Status: supplier.Paid, RawStatus: "OK", Amount: 1999,
					Currency: "CNY",
					Identity: map[string]string{"account": "M1"},
				},
			})
		})
	}
}

// fuzzAnswer gives any body as the answer to a query: only what the supplier signs may be
// believed.
func fuzzAnswer(f *testing.F, format string) {
	d := theirs(format, "hmac-sha256")
	known := genuine(d, suppliertest.Query, suppliertest.Change{})
	f.Add(known.Body)
	f.Add([]byte("{}"))
	var answer []byte
	a := caller(f, callable("form", "hmac-sha256", format))(suppliertest.Client(func(*http.Request) supplier.Exchange {
		return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: answer}
	}))
	call := func(tb testing.TB, body []byte) supplier.Answer {
		answer = body
		got, err := supplier.AbilitiesOf(a).Query(context.Background(), supplier.Ref{Reference: suppliertest.Reference})
		if err != nil {
			tb.Fatal(err)
		}
		return got
	}
	want := call(f, known.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := call(t, body); got.State != supplier.AnswerUnknown && !reflect.DeepEqual(got.Says, want.Says) {
			t.Errorf("believed: %+v", got)
		}
	})
}

func FuzzFormAnswer(f *testing.F) { fuzzAnswer(f, "form") }
func FuzzJSONAnswer(f *testing.F) { fuzzAnswer(f, "json") }
func FuzzXMLAnswer(f *testing.F)  { fuzzAnswer(f, "xml") }
