package stripe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

const (
	testKey    = "sk_test_only_51canary"
	testIntent = "pi_3TestIntent0001"
	testClient = "pi_3TestIntent0001_secret_testonlycanary"
)

func calling(tb testing.TB, out supplier.Client) supplier.Adapter {
	tb.Helper()
	raw, _ := json.Marshal(config{WebhookSecrets: []string{testSecret}, APIKey: testKey})
	a, err := Kind.New("st-main", raw, out)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// answered is a payment intent as the API answers it, shortened. An account replaces
// nothing: an intent names none.
func intentText(c suppliertest.Change) string {
	status := cmp.Or(c.Status, "succeeded")
	amount := cmp.Or(c.Amount, "1999")
	received := "0"
	if status == "succeeded" {
		received = amount
	}
	fields := []struct{ part, text string }{
		{"TradeNo", fmt.Sprintf(`"id":%q`, cmp.Or(c.TradeNo, testIntent))},
		{"", `"object":"payment_intent"`},
		{"", `"amount":` + amount},
		{"Amount", `"amount_received":` + received},
		{"", fmt.Sprintf(`"client_secret":%q`, testClient)},
		{"", fmt.Sprintf(`"created":%d`, suppliertest.Now.Add(-time.Minute).Unix())},
		{"Currency", `"currency":"usd"`},
		{"", fmt.Sprintf(`"latest_charge":{"id":"ch_3TestCharge0001","object":"charge","created":%d,"refunded":false,"amount_refunded":0}`,
			suppliertest.Now.Add(-2*time.Second).Unix())},
		{"OrderRef", fmt.Sprintf(`"metadata":{"order_no":%q}`, cmp.Or(c.OrderRef, suppliertest.Reference))},
		{"Status", fmt.Sprintf(`"status":%q`, status)},
	}
	var texts []string
	for _, f := range fields {
		if f.part == "" || f.part != c.Without {
			texts = append(texts, f.text)
		}
	}
	if c.Duplicate {
		texts = append(texts, `"metadata":{"order_no":"SO20260301000009"}`)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func reply(status int, body string) supplier.Exchange {
	return supplier.Exchange{
		Status: status, Header: http.Header{"Content-Type": {"application/json"}, "Request-Id": {"req_Test0001"}},
		Body: []byte(body),
	}
}

func answerOf(op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
	switch op {
	case suppliertest.Refund:
		return reply(http.StatusOK, refundText(c))
	case suppliertest.RefundQuery:
		return reply(http.StatusOK, `{"object":"list","has_more":false,"data":[`+refundText(c)+`]}`)
	}
	switch op {
	case suppliertest.Pay:
		c.Status = cmp.Or(c.Status, "requires_payment_method")
	case suppliertest.Close:
		c.Status = cmp.Or(c.Status, "canceled")
	}
	return reply(http.StatusOK, intentText(c))
}

func failure(status int, kind, code string) supplier.Exchange {
	return reply(status,
		fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"Invalid API Key provided: %s","payment_intent":{"client_secret":%q}}}`, kind,
			code, testKey, testClient))
}

func intentSays(s supplier.Status, word string) supplier.Callback {
	return supplier.Callback{
		EventKey: testIntent + ":payment_intent." + word, OrderRef: suppliertest.Reference, TradeNo: testIntent, Status: s,
		RawStatus: "payment_intent." + word, Amount: 1999, Currency: "USD", Identity: paid.Identity,
	}
}

func answerCases() []suppliertest.AnswerCase {
	var cases []suppliertest.AnswerCase
	add := func(name string, op suppliertest.Op, x supplier.Exchange, state string, total int64, class supplier.Class) {
		cases = append(cases, suppliertest.AnswerCase{Name: name, Op: op, Answer: x, State: state, RefundTotal: total, Class: class})
	}
	for word, state := range map[string]supplier.AnswerState{
		"succeeded": supplier.AnswerPaid, "canceled": supplier.AnswerClosed, "processing": supplier.AnswerPaying,
		"requires_action": supplier.AnswerPaying, "requires_capture": supplier.AnswerPaying,
		"requires_confirmation": supplier.AnswerPaying, "requires_payment_method": supplier.AnswerPaying,
	} {
		add(word, suppliertest.Query, reply(200, intentText(suppliertest.Change{Status: word})), string(state), 0, supplier.ClassOK)
	}
	for _, word := range []string{"payment_failed", "created", "partially_funded"} { // events, not statuses
		state := map[string]string{"payment_failed": "paying"}[word]
		class := map[string]supplier.Class{"payment_failed": supplier.ClassOK}[word]
		add(word, suppliertest.Query, reply(200, intentText(suppliertest.Change{Status: word})), cmp.Or(state, "unknown"), 0,
			cmp.Or(class, supplier.ClassUnknown))
	}
	back := func(charge string) supplier.Exchange {
		return reply(200, strings.Replace(intentText(suppliertest.Change{}), `"refunded":false,"amount_refunded":0`, charge, 1))
	}
	add("refunded", suppliertest.Query, back(`"refunded":true,"amount_refunded":1999`), "paid", 1999, supplier.ClassOK)
	add("refunded in part", suppliertest.Query, back(`"refunded":false,"amount_refunded":1`), "paid", 1, supplier.ClassOK)
	add("refunded, without an amount", suppliertest.Query, back(`"refunded":true`), "paid", 1999, supplier.ClassOK)
	add("another intent", suppliertest.Query, reply(200, intentText(suppliertest.Change{TradeNo: "pi_3TestIntent0002"})), "unknown", 0,
		supplier.ClassBadAnswer)
	add("not found", suppliertest.Query, failure(404, "invalid_request_error", "resource_missing"), "unknown", 0, supplier.ClassRefused)
	add("bad key", suppliertest.Query, failure(401, "invalid_request_error", ""), "unknown", 0, supplier.ClassRefused)
	add("paid already", suppliertest.Close, failure(400, "invalid_request_error", "payment_intent_unexpected_state"), "unknown", 0,
		supplier.ClassRefused)
	add("still going", suppliertest.Close, reply(200, intentText(suppliertest.Change{Status: "processing"})), "paying", 0,
		supplier.ClassOK)
	add("paid in the answer to a cancel", suppliertest.Close, reply(200, intentText(suppliertest.Change{})), "unknown", 0,
		supplier.ClassUnknown)
	for _, op := range []suppliertest.Op{suppliertest.Pay, suppliertest.Query, suppliertest.Close} {
		add("too many", op, failure(429, "invalid_request_error", "rate_limit"), "unknown", 0, supplier.ClassUnknown)
		add("broken", op, failure(500, "api_error", ""), "unknown", 0, supplier.ClassUnknown)
		add("broken, 400", op, failure(400, "api_error", ""), "unknown", 0, supplier.ClassUnknown)
		add("gateway", op, reply(503, "<html>"), "unknown", 0, supplier.ClassBadAnswer)
	}
	cases = append(cases, refundCases()...)
	add("invalid", suppliertest.Pay, failure(400, "invalid_request_error", "amount_too_small"), "refused", 0, supplier.ClassRefused)
	add("no key", suppliertest.Pay, failure(401, "invalid_request_error", ""), "refused", 0, supplier.ClassRefused)
	add("forbidden", suppliertest.Pay, failure(403, "invalid_request_error", ""), "refused", 0, supplier.ClassRefused)
	add("other parameters", suppliertest.Pay, failure(400, "idempotency_error", ""), "unknown", 0, supplier.ClassUnknown)
	add("key in use", suppliertest.Pay, failure(409, "invalid_request_error", "idempotency_key_in_use"), "unknown", 0,
		supplier.ClassUnknown)
	add("declined", suppliertest.Pay, failure(402, "card_error", "card_declined"), "unknown", 0, supplier.ClassRefused)
	add("another amount", suppliertest.Pay, reply(200, intentText(suppliertest.Change{Amount: "2000"})), "unknown", 0,
		supplier.ClassBadAnswer)
	add("no secret", suppliertest.Pay, reply(200, strings.Replace(intentText(suppliertest.Change{}), testClient, "", 1)), "unknown", 0,
		supplier.ClassBadAnswer)
	return cases
}

func TestCallsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	settled := intentSays(supplier.Paid, "succeeded")
	settled.OccurredAt = paid.OccurredAt
	suppliertest.RunAbilities(t, suppliertest.Abilities{
		New:        func(out supplier.Client) supplier.Adapter { return calling(t, out) },
		Payment:    supplier.Payment{Subject: "A & B=1", Amount: 1999, Currency: "USD"},
		ExternalID: testIntent,
		Answer:     answerOf,
		Has: map[suppliertest.Op][]string{
			suppliertest.Pay:    {"OrderRef", "Amount", "Duplicate"},
			suppliertest.Query:  {"OrderRef", "TradeNo", "Amount", "Currency", "Status", "Duplicate"},
			suppliertest.Close:  {"OrderRef", "Status", "Duplicate"},
			suppliertest.Refund: {"RefundNo", "Amount", "Status", "Duplicate"}, suppliertest.RefundQuery: {
				"RefundNo", "Amount", "Status",
				"Duplicate",
			},
		},
		Refund: supplier.Refund{TradeNo: testIntent, Amount: 500, Total: 1999, Currency: "USD", Reason: "broken"},
		Refunded: map[suppliertest.Op]supplier.RefundAnswer{
			suppliertest.Refund:      {State: supplier.RefundSucceeded, SupplierNo: "re_3TestRefund0001", Word: "succeeded"},
			suppliertest.RefundQuery: {State: supplier.RefundSucceeded, SupplierNo: "re_3TestRefund0001", Word: "succeeded"},
		},
		Signed: func(_ suppliertest.Op, body []byte) supplier.Exchange { return reply(http.StatusOK, string(body)) },
		Started: supplier.Started{
			State: supplier.Accepted, Kind: supplier.ValueClientSecret, Value: testClient, ExternalID: testIntent,
			Word: "requires_payment_method",
		},
		Says:    settled,
		Closed:  intentSays(supplier.Closed, "canceled"),
		Cases:   answerCases(),
		Secrets: []string{testSecret, testKey, testClient},
	})
}

var whole = supplier.Payment{
	Reference: suppliertest.Reference, OrderNo: "SO20260301000001", Subject: "Tea & cake", Amount: 1999, Currency: "USD",
	ClientIP: "203.0.113.9",
}

// call makes calls over a line that answers x, and returns what was sent.
func call(t *testing.T, x supplier.Exchange, call func(supplier.Abilities)) []suppliertest.Sent {
	t.Helper()
	line := &suppliertest.Line{Reply: func(*http.Request, []byte) supplier.Exchange { return x }}
	call(supplier.AbilitiesOf(calling(t, line)))
	return line.Sent()
}

func TestRequestsAreAsDocumented(t *testing.T) {
	t.Parallel()
	ref := supplier.Ref{Reference: suppliertest.Reference, ExternalID: testIntent}
	found := ref
	found.ExternalID = ""
	for name, c := range map[string]struct {
		call         func(supplier.Abilities)
		method, path string
		form         string
		key          string
	}{
		"create": {
			func(a supplier.Abilities) {
				p := whole
				p.CreatedAt = time.Now()
				_, _ = a.Start(t.Context(), p)
			}, "POST", "/v1/payment_intents",
			"amount=1999&automatic_payment_methods%5Benabled%5D=true&currency=usd&description=Tea+%26+cake&metadata%5Border_no%5D=SO20260301000001_2", suppliertest.Reference,
		},
		"retrieve": {
			func(a supplier.Abilities) { _, _ = a.Query(t.Context(), ref) }, "GET",
			"/v1/payment_intents/pi_3TestIntent0001?expand%5B%5D=latest_charge", "", "",
		},
		"search": {
			func(a supplier.Abilities) { _, _ = a.Query(t.Context(), found) }, "GET",
			"/v1/payment_intents/search?expand%5B%5D=data.latest_charge&limit=100&query=metadata%5B%22order_no%22%5D%3A%22SO20260301000001_2%22", "", "",
		},
		"refund": {
			func(a supplier.Abilities) { _, _ = a.Refund(t.Context(), theRefund) }, "POST", "/v1/refunds",
			"amount=500&metadata%5Border_no%5D=SO20260301000001_2&metadata%5Brefund_no%5D=R20260301000001&payment_intent=pi_3TestIntent0001", suppliertest.RefundNo,
		},
		"refunds": {
			func(a supplier.Abilities) { _, _ = a.RefundQuery(t.Context(), theRefund) }, "GET",
			"/v1/refunds?limit=100&payment_intent=pi_3TestIntent0001", "", "",
		},
		"cancel": {
			func(a supplier.Abilities) { _, _ = a.Close(t.Context(), ref) }, "POST",
			"/v1/payment_intents/pi_3TestIntent0001/cancel", "cancellation_reason=abandoned", "",
		},
	} {
		sent := call(t, supplier.Exchange{Class: supplier.ClassTimeout}, c.call)
		if len(sent) != 1 {
			t.Fatalf("%s: %d requests", name, len(sent))
		}
		r, h := sent[0].Request, sent[0].Request.Header
		if r.Method != c.method || r.URL.String() != "https://api.stripe.com"+c.path || string(sent[0].Body) != c.form {
			t.Errorf("%s: %s %s\n%s", name, r.Method, r.URL, sent[0].Body)
		}
		if h.Get("Authorization") != "Bearer "+testKey || h.Get("Idempotency-Key") != c.key || h.Get("Stripe-Version") != "2024-06-20" ||
			(h.Get("Content-Type") == "application/x-www-form-urlencoded") != (c.form != "") {
			t.Errorf("%s: headers %v", name, h)
		}
	}
}

// A search's reference cannot leave its quotes, an id cannot leave its place in the path.
func TestWhatIsAskedForStaysInItsPlace(t *testing.T) {
	t.Parallel()
	sent := call(t, supplier.Exchange{}, func(a supplier.Abilities) {
		_, _ = a.Query(t.Context(), supplier.Ref{Reference: `a" OR metadata["x"]:"b\`})
		_, _ = a.Query(t.Context(), supplier.Ref{Reference: "a", ExternalID: "../refunds?x=1#"})
	})
	if q := sent[0].Request.URL.Query().Get("query"); q != `metadata["order_no"]:"a\" OR metadata[\"x\"]:\"b\\"` {
		t.Errorf("search: %s", q)
	}
	if got := sent[1].Request.URL.EscapedPath(); got != "/v1/payment_intents/"+url.PathEscape("../refunds?x=1#") {
		t.Errorf("retrieve: %s", got)
	}
}

func TestSearchBelievesOnlyWhatItFinds(t *testing.T) {
	t.Parallel()
	one := func(status, id string) string { return intentText(suppliertest.Change{Status: status, TradeNo: id}) }
	other := intentText(suppliertest.Change{OrderRef: "SO20260301000002"})
	for name, c := range map[string]struct {
		body  string
		state supplier.AnswerState
		class supplier.Class
		id    string
	}{
		"nothing":             {`{"object":"search_result","has_more":false,"data":[]}`, supplier.AnswerUnknown, supplier.ClassOK, ""},
		"no search":           {`{"object":"list","has_more":false,"data":[]}`, supplier.AnswerUnknown, supplier.ClassBadAnswer, ""},
		"nothing at all":      {`{}`, supplier.AnswerUnknown, supplier.ClassBadAnswer, ""},
		"one":                 {one("succeeded", testIntent), supplier.AnswerPaid, supplier.ClassOK, testIntent},
		"one canceled":        {one("canceled", testIntent), supplier.AnswerClosed, supplier.ClassOK, testIntent},
		"canceled, then paid": {one("canceled", "pi_1") + "," + one("succeeded", "pi_2"), supplier.AnswerPaid, supplier.ClassOK, "pi_2"},
		"paid, then canceled": {one("succeeded", "pi_1") + "," + one("canceled", "pi_2"), supplier.AnswerPaid, supplier.ClassOK, "pi_1"},
		"canceled and waiting": {
			one("canceled", "pi_1") + "," + one("requires_action", "pi_2"), supplier.AnswerPaying, supplier.ClassOK,
			"pi_2",
		},
		"waiting and canceled": {
			one("requires_action", "pi_1") + "," + one("canceled", "pi_2"), supplier.AnswerPaying, supplier.ClassOK,
			"pi_1",
		},
		"waiting, then paid": {
			one("requires_action", "pi_1") + "," + one("succeeded", "pi_2"), supplier.AnswerPaid, supplier.ClassOK,
			"pi_2",
		},
		"another order's":   {other, supplier.AnswerUnknown, supplier.ClassBadAnswer, ""},
		"one and another's": {one("canceled", "pi_1") + "," + other, supplier.AnswerUnknown, supplier.ClassBadAnswer, ""},
		"an unknown word":   {one("canceled", "pi_1") + "," + one("odd", "pi_2"), supplier.AnswerUnknown, supplier.ClassUnknown, ""},
	} {
		body := c.body
		if !strings.Contains(body, `"data"`) && body != "{}" {
			body = `{"object":"search_result","has_more":false,"data":[` + body + `]}`
		}
		call(t, reply(200, body), func(a supplier.Abilities) {
			got, err := a.Query(t.Context(), supplier.Ref{Reference: suppliertest.Reference})
			if err != nil || got.State != c.state || got.Exchange.Class != c.class || got.ExternalID != c.id || got.Says.TradeNo != c.id {
				t.Errorf("%s: %v, %s, class %s, id %q (%v)", name, err, got.State, got.Exchange.Class, got.ExternalID, got.Reason)
			}
			if strings.Contains(string(got.Exchange.Body), testClient) {
				t.Errorf("%s: the client secret is kept", name)
			}
		})
	}
	more := `{"object":"search_result","has_more":true,"data":[` + one("canceled", testIntent) + `]}`
	call(t, reply(200, more), func(a supplier.Abilities) {
		if got, _ := a.Query(t.Context(), supplier.Ref{Reference: suppliertest.Reference}); got.State != supplier.AnswerUnknown {
			t.Errorf("closed, while more is found: %s", got.State)
		}
	})
}

func TestCancelNeedsTheIntentsID(t *testing.T) {
	t.Parallel()
	sent := call(t, supplier.Exchange{}, func(a supplier.Abilities) {
		got, err := a.Close(t.Context(), supplier.Ref{Reference: suppliertest.Reference})
		if err != nil || got.State != supplier.AnswerUnknown || got.Exchange.Class != supplier.ClassRefused || got.Reason.Code == "" {
			t.Errorf("%v %+v", err, got)
		}
	})
	if len(sent) > 0 {
		t.Errorf("%d sent", len(sent))
	}
}

// After a day Stripe has forgotten the key, and a repeat would be a second payment.
func TestStartIsRepeatedForTwentyHoursOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for age, want := range map[time.Duration]int{0: 1, 20 * time.Hour: 1, 20*time.Hour + 1: 0, 30 * 24 * time.Hour: 0} {
			sent := call(t, supplier.Exchange{Class: supplier.ClassTimeout}, func(a supplier.Abilities) {
				p := whole
				p.CreatedAt = time.Now().Add(-age)
				if s, err := a.Start(t.Context(), p); err != nil || s.State != supplier.StartUnknown || s.Reason.Code == "" {
					t.Errorf("%s: %v %+v", age, err, s)
				}
			})
			if len(sent) != want {
				t.Errorf("after %s: %d sent, want %d", age, len(sent), want)
			}
		}
	})
}

func TestWhatCannotBeExpressedIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field  string
		change func(*supplier.Payment)
	}{
		"no number":     {"order_no", func(p *supplier.Payment) { p.Reference = "" }},
		"long":          {"order_no", func(p *supplier.Payment) { p.Reference = strings.Repeat("S", 256) }},
		"new line":      {"order_no", func(p *supplier.Payment) { p.Reference = "a\nb" }},
		"nothing":       {"amount", func(p *supplier.Payment) { p.Amount = 0 }},
		"a third digit": {"amount", func(p *supplier.Payment) { p.Amount, p.Currency = 1234, "KWD" }},
		"no currency":   {"currency", func(p *supplier.Payment) { p.Currency = "usd" }},
		"qr":            {"method", func(p *supplier.Payment) { p.Method = supplier.MethodQR }},
		"redirect":      {"method", func(p *supplier.Payment) { p.Method = supplier.MethodRedirect }},
	} {
		p := whole
		p.CreatedAt = time.Now()
		c.change(&p)
		sent := call(t, supplier.Exchange{}, func(a supplier.Abilities) {
			if s, err := a.Start(t.Context(), p); supplier.AsField(err) == nil || supplier.AsField(err).Field != c.field || s.State != "" {
				t.Errorf("%s: %v %+v", name, err, s)
			}
		})
		if len(sent) > 0 {
			t.Errorf("%s: %d sent", name, len(sent))
		}
	}
}

// Minor units are Stripe's own: nothing is multiplied.
func TestAmountsAreMinorUnits(t *testing.T) {
	t.Parallel()
	for currency, amount := range map[string]int64{"USD": 1999, "JPY": 1999, "KRW": 1, "KWD": 1230, "HUF": 199900} {
		p := whole
		p.CreatedAt, p.Currency, p.Amount = time.Now(), currency, amount
		sent := call(t, supplier.Exchange{}, func(a supplier.Abilities) { _, _ = a.Start(t.Context(), p) })
		form, err := url.ParseQuery(string(sent[0].Body))
		if err != nil || form.Get("amount") != fmt.Sprint(amount) || form.Get("currency") != strings.ToLower(currency) {
			t.Errorf("%s: %v %v", currency, err, form)
		}
	}
}

func TestAbilitiesNeedTheirKey(t *testing.T) {
	t.Parallel()
	raw, _ := json.Marshal(config{WebhookSecrets: []string{testSecret}})
	bare, err := Kind.New("st-main", raw, nil)
	if err != nil || supplier.AbilitiesOf(bare) != (supplier.Abilities{}) {
		t.Errorf("without a key: %v %+v", err, supplier.AbilitiesOf(bare))
	}
	if got := supplier.AbilitiesOf(calling(t, &suppliertest.Line{})); got.Payer == nil || got.Querier == nil || got.Closer == nil ||
		got.CloseAfter != 0 {
		t.Errorf("with a key: %+v", got)
	}
	for base, ok := range map[string]bool{
		"https://stripe.example": true, "http://127.0.0.1:9000/st": true, "http://localhost:9000": true, "http://[::1]:9": true,
		"http://stripe.example": false, "http://10.0.0.1": false, "http://127.0.0.1.example": false,
	} {
		raw, _ := json.Marshal(config{WebhookSecrets: []string{testSecret}, APIKey: testKey, BaseURL: base})
		_, err := Kind.New("st-main", raw, nil)
		if f := supplier.AsField(err); (err == nil) != ok || !ok && f.Field != "base_url" {
			t.Errorf("%s: %v", base, err)
		}
	}
	raw, _ = json.Marshal(config{WebhookSecrets: []string{testSecret}, APIKey: "sk_canary\r\nX: y"})
	if _, err := Kind.New("st-main", raw, nil); supplier.AsField(err) == nil || supplier.AsField(err).Field != "api_key" ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("a key with a line break: %v", err)
	}
}

func TestSettingsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	suppliertest.RunSettings(t, suppliertest.Settings{
		Kind: Kind, Bare: map[string]any{"webhook_secrets": []string{testSecret}},
		Calls: map[string]any{"api_key": testKey, "base_url": "https://st.example"},
		WrongCalls: map[string][]map[string]any{
			"api_key": {{"base_url": "https://st.example"}, {"api_key": "sk test"}},
			"base_url": {
				{"base_url": "st.example"},
				{"base_url": "st.example", "api_key": testKey},
				{"base_url": "http://st.example", "api_key": testKey},
			},
		},
		Wrong:   []map[string]any{{"webhook_secrets": nil}, {"webhook_secrets": []string{testKey}}, {"key": "x"}},
		Message: message(suppliertest.Change{}), Want: paid,
	})
}

// FuzzAnswer answers anything to a query: what counts as paid must name its amount in
// digits, and the order that was asked for.
func FuzzAnswer(f *testing.F) {
	f.Add(200, intentText(suppliertest.Change{}), testIntent)
	f.Add(200, `{"object":"search_result","has_more":false,"data":[`+intentText(suppliertest.Change{})+`]}`, "")
	f.Add(404, `{"error":{"type":"invalid_request_error","code":"resource_missing"}}`, testIntent)
	var answer supplier.Exchange
	a := supplier.AbilitiesOf(calling(f, suppliertest.Client(func(*http.Request) supplier.Exchange { return answer })))
	f.Fuzz(func(t *testing.T, status int, body, id string) {
		answer = reply(status, body)
		got, err := a.Query(t.Context(), supplier.Ref{Reference: suppliertest.Reference, ExternalID: id})
		switch {
		case err != nil:
			t.Error(err)
		case got.State == supplier.AnswerPaid && !strings.Contains(body, fmt.Sprint(got.Says.Amount)):
			t.Errorf("paid %d, which is not in the answer", got.Says.Amount)
		case got.State != supplier.AnswerUnknown && (got.Says.OrderRef != suppliertest.Reference || id != "" && got.Says.TradeNo != id):
			t.Errorf("%s of %q, %q", got.State, got.Says.OrderRef, got.Says.TradeNo)
		case got.State == supplier.AnswerNotFound || got.State == supplier.AnswerFailed:
			t.Errorf("an intent is never %s", got.State)
		}
	})
}
