package stripe

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// Secrets of the tests only.
const (
	testSecret = "whsec_test_only_0f6a2b6d5c1e4a7f9b8c3d2e1f0a9b8c"
	oldSecret  = "whsec_test_only_old_77aa1c0de5b64f0f8a3e9d2c4b6a1f0e"
)

func newTest(tb testing.TB, secrets ...string) supplier.Adapter {
	tb.Helper()
	raw, _ := json.Marshal(config{WebhookSecrets: secrets, APIKey: "sk_test_only", BaseURL: "https://stripe.example"})
	a, err := Kind.New("st-main", raw, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// intentEvent is a payment intent's event as Stripe sends it, shortened to the
// fields that say something of the payment.
func intentEvent(c suppliertest.Change) string {
	twice := ""
	if c.Duplicate {
		twice = `, "order_no": "ORDER-20260301-OTHER"`
	}
	intent := cmp.Or(c.TradeNo, "pi_3TestIntent0001")
	return fmt.Sprintf(`{
  "id": "evt_3TestEvent0001",
  "object": "event",
  "api_version": "2024-06-20",
  "created": %d,
  "data": {
    "object": {
      "id": %q,
      "object": "payment_intent",
      "amount": %[3]s,
      "amount_received": %[3]s,
      "currency": "usd",
      "latest_charge": "ch_3TestCharge0001",
      "metadata": {"order_no": %q%s},
      "status": "succeeded"
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {"id": "req_Test0001", "idempotency_key": null},
  "type": %q
}`, suppliertest.Now.Add(-2*time.Second).Unix(), intent, cmp.Or(c.Amount, "1999"),
		cmp.Or(c.OrderRef, "ORDER-20260301-0001"), twice, cmp.Or(c.Status, "payment_intent.succeeded"))
}

// signed puts a body into a request as Stripe does.
func signed(body string, c suppliertest.Change, secrets ...string) *supplier.Request {
	at := c.At().Unix()
	header := fmt.Sprintf("t=%d", at)
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.%s", at, body)
		signature := hex.EncodeToString(mac.Sum(nil))
		if c.Tamper != nil {
			signature = c.Tamper(signature)
		}
		header += ",v1=" + signature
	}
	return &supplier.Request{
		Method: http.MethodPost, Path: "/callback/st-main", Body: []byte(body), ReceivedAt: suppliertest.Now,
		Header: http.Header{
			"Content-Type":     {"application/json; charset=utf-8"},
			"Stripe-Signature": {header},
			"User-Agent":       {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
		},
	}
}

// connected makes it an event of a connected account, as an endpoint for such accounts receives
// it.
func connected(event, account string) string {
	if account == "" {
		return event
	}
	return strings.Replace(event, `"object": "event",`, `"object": "event",`+fmt.Sprintf("\n  %q: %q,", "account", account), 1)
}

func message(c suppliertest.Change) *supplier.Request {
	return signed(connected(intentEvent(c), c.Account), c, testSecret)
}

var paid = supplier.Callback{
	EventKey: "pi_3TestIntent0001:payment_intent.succeeded", OrderRef: "ORDER-20260301-0001",
	TradeNo: "pi_3TestIntent0001", Status: supplier.Paid, RawStatus: "payment_intent.succeeded",
	Amount: 1999, Currency: "USD", Identity: map[string]string{"account": "own"},
	OccurredAt: suppliertest.Now.Add(-2 * time.Second),
}

func TestAdapterKeepsItsPromises(t *testing.T) {
	t.Parallel()
	suppliertest.Run(t, suppliertest.Suite{
		Adapter:     newTest(t, oldSecret, testSecret),
		Stranger:    newTest(t, oldSecret),
		Message:     message,
		Want:        paid,
		OtherAmount: "2000",
		OtherMinor:  2000,
		OtherStatus: "payment_intent.payment_failed",
		Harmless: []string{
			"payment_intent.created", "payment_intent.processing", "payment_intent.requires_action",
			"payment_intent.amount_capturable_updated",
			"charge.pending", "charge.failed", "charge.expired", "charge.updated", "customer.created", "customer.subscription.updated",
			"product.updated", "price.created", "payment_method.attached", "setup_intent.succeeded", "account.updated",
		},
		OddAmounts:       []string{`"1999"`, "1999.0", "{}"},
		SignatureHeaders: []string{"Stripe-Signature"},
		Window:           5 * time.Minute,
		Secrets:          []string{testSecret, oldSecret, "sk_test_only"},
		Replies: map[supplier.Result]supplier.Reply{
			supplier.Taken:          {Status: 200, ContentType: "application/json", Body: []byte(`{"received":true}`)},
			supplier.BadSignature:   {Status: 401, ContentType: "application/json", Body: []byte(`{"error":"bad signature"}`)},
			supplier.Malformed:      {Status: 400, ContentType: "application/json", Body: []byte(`{"error":"malformed event"}`)},
			supplier.Unavailable:    {Status: 503, ContentType: "application/json", Body: []byte(`{"error":"busy, send again"}`)},
			supplier.InternalFailed: {Status: 500, ContentType: "application/json", Body: []byte(`{"error":"internal error, send again"}`)},
		},
	})
}

// eventOf is another event: an object of any kind under a type.
func eventOf(kind, object string) string {
	return fmt.Sprintf(`{"id":"evt_3TestEvent0002","object":"event","created":%d,"data":{"object":%s},"livemode":false,"type":%q}`,
		suppliertest.Now.Add(-2*time.Second).Unix(), object, kind)
}

func sessionObject(status string) string {
	return `{"id":"cs_test_0001","object":"checkout.session","amount_total":1999,"currency":"usd","payment_intent":"pi_3TestIntent0001","payment_status":"` +
		status + `","metadata":{"order_no":"ORDER-20260301-0001"}}`
}

func refundObject(status string) string {
	return `{"id":"re_0001","object":"refund","amount":500,"currency":"usd","charge":"ch_3TestCharge0001","payment_intent":"pi_3TestIntent0001","status":"` +
		status + `","metadata":{"order_no":"ORDER-20260301-0001","refund_no":"R-1"}}`
}

func charge(sum int) string {
	return fmt.Sprintf(
		`{"id":"ch_3TestCharge0001","object":"charge","amount":1999,"amount_refunded":%d,"currency":"usd","payment_intent":"pi_3TestIntent0001","metadata":{"order_no":"ORDER-20260301-0001"}}`, sum)
}

func TestEventsMean(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	with := func(change func(*supplier.Callback)) supplier.Callback {
		want := paid
		change(&want)
		return want
	}
	as := func(s supplier.Status, kind, key string, amount int64) supplier.Callback {
		return with(func(c *supplier.Callback) {
			c.Status, c.RawStatus, c.EventKey, c.Amount = s, kind, key, amount
		})
	}
	intent := func(kind string) string { return intentEvent(suppliertest.Change{Status: kind}) }
	refunded := func(s supplier.Status, kind, key string) supplier.Callback {
		c := as(s, kind, key, 500)
		c.RefundNo, c.RefundID, c.Refund = "R-1", "re_0001", refundStates[key[len("re_0001:"):]]
		return c
	}
	bare := func(s supplier.Status, kind string) supplier.Callback {
		return supplier.Callback{
			EventKey: "evt_3TestEvent0002", Status: s, RawStatus: kind, Identity: map[string]string{"account": "own"},
			OccurredAt: paid.OccurredAt,
		}
	}
	back := as(supplier.Refunded, "charge.refunded", "pi_3TestIntent0001:charge.refunded:500", 500)
	back.RefundTotal = 500
	for name, tc := range map[string]struct {
		body string
		want supplier.Callback
	}{
		"payment_intent.succeeded": {intent("payment_intent.succeeded"), paid},
		"payment_intent.payment_failed": {intent("payment_intent.payment_failed"), as(supplier.Failed,
			"payment_intent.payment_failed", "pi_3TestIntent0001:payment_intent.payment_failed", 1999)},
		"payment_intent.canceled": {intent("payment_intent.canceled"), with(func(c *supplier.Callback) {
			c.Status, c.RawStatus, c.EventKey, c.OneTry = supplier.Closed, "payment_intent.canceled",
				"pi_3TestIntent0001:payment_intent.canceled", true
		})},
		"checkout.session.completed.paid": {eventOf("checkout.session.completed", sessionObject("paid")), as(supplier.Paid,
			"checkout.session.completed", "pi_3TestIntent0001:checkout.session.completed:paid", 1999)},
		"checkout.session.completed.unpaid": {eventOf("checkout.session.completed", sessionObject("unpaid")), as(supplier.Other,
			"checkout.session.completed", "pi_3TestIntent0001:checkout.session.completed:unpaid", 1999)},
		"checkout.session.async_payment_succeeded": {
			eventOf("checkout.session.async_payment_succeeded", sessionObject("paid")),
			as(supplier.Paid,
				"checkout.session.async_payment_succeeded", "pi_3TestIntent0001:checkout.session.async_payment_succeeded", 1999),
		},
		"checkout.session.async_payment_failed": {
			eventOf("checkout.session.async_payment_failed", sessionObject("unpaid")),
			as(supplier.Failed,
				"checkout.session.async_payment_failed", "pi_3TestIntent0001:checkout.session.async_payment_failed", 1999),
		},
		"checkout.session.expired": {eventOf("checkout.session.expired", sessionObject("unpaid")), as(supplier.Failed,
			"checkout.session.expired", "pi_3TestIntent0001:checkout.session.expired", 1999)},
		"charge.refunded": {eventOf("charge.refunded", charge(500)), back},
		"refund.created.pending": {eventOf("refund.created", refundObject("pending")), refunded(supplier.Other, "refund.created",
			"re_0001:pending")},
		"refund.updated.succeeded": {eventOf("refund.updated", refundObject("succeeded")), refunded(supplier.Refunded, "refund.updated",
			"re_0001:succeeded")},
		"refund.failed": {eventOf("refund.failed", refundObject("failed")), refunded(supplier.Other, "refund.failed",
			"re_0001:failed")},
		"checkout.session.completed.odd": {eventOf("checkout.session.completed", sessionObject("in_part")), as(supplier.Unknown,
			"checkout.session.in_part", "pi_3TestIntent0001:checkout.session.completed:in_part", 1999)},
		"refund.updated.odd": {eventOf("refund.updated", refundObject("halfway")), refunded(supplier.Unknown, "refund.halfway",
			"re_0001:halfway")},
		"charge.succeeded": {eventOf("charge.succeeded", charge(0)), as(supplier.Other, "charge.succeeded",
			"pi_3TestIntent0001:charge.succeeded", 1999)},
		"charge.succeeded.intentless": {
			eventOf("charge.succeeded", strings.Replace(charge(0), `"pi_3TestIntent0001"`, "null", 1)),
			with(func(c *supplier.Callback) {
				c.Status, c.RawStatus, c.EventKey, c.TradeNo = supplier.Unknown, "charge.succeeded without payment_intent",
					"ch_3TestCharge0001:charge.succeeded", "ch_3TestCharge0001"
			}),
		},
		"customer.created": {
			eventOf("customer.created", `{"id":"cus_1","amount":"any"}`),
			bare(supplier.Other, "customer.created"),
		},
		"payout.failed": {
			eventOf("payout.failed", `{"id":"po_1","amount":"any"}`),
			bare(supplier.Unknown, "payout.failed"),
		},
		"payment_intent.partially_funded": {
			eventOf("payment_intent.partially_funded", `[]`),
			bare(supplier.Unknown, "payment_intent.partially_funded"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/" + name + ".http"
			suppliertest.Kept(t, path, signed(tc.body, suppliertest.Change{}, testSecret))
			got, err := a.Parse(suppliertest.Load(t, path), &supplier.Trace{})
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, tc.want)
			}
		})
	}
}

// Events of API v2 name their subject only, and write the time in another form.
func TestAThinEventIsOfUnknownType(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	for name, c := range map[string]struct{ event, tradeNo string }{
		"of an account": {`{"id":"evt_1","object":"v2.core.event","type":"v2.core.account.updated","livemode":false,"created":"2026-03-01T08:00:00.000Z",` +
			`"related_object":{"id":"acct_1","type":"v2.core.account","url":"/v2/core/accounts/acct_1"}}`, "acct_1"},
		"about nothing": {`{"id":"evt_1","object":"v2.core.event","type":"v2.core.account.updated","created":"2026-03-01T08:00:00Z","related_object":null}`, ""},
		"with context":  {`{"id":"evt_1","object":"v2.money_management.event","type":"v2.core.account.updated","context":"acct_2","created":"2026-03-01T08:00:00Z","data":[]}`, ""},
	} {
		got, err := a.Parse(signed(c.event, suppliertest.Change{}, testSecret), &supplier.Trace{})
		if err != nil || got.Status != supplier.Unknown || got.RawStatus != "v2.core.account.updated" || got.EventKey != "evt_1" ||
			got.TradeNo != c.tradeNo || !got.OccurredAt.Equal(suppliertest.Now) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What happens in test mode is no money, whatever its metadata says.
func TestAnEventOfTheOtherModePaysNothing(t *testing.T) {
	t.Parallel()
	test := intentEvent(suppliertest.Change{}) // "livemode": false
	live := strings.Replace(test, `"livemode": false`, `"livemode": true`, 1)
	neither := strings.Replace(test, `"livemode": false,`, "", 1)
	for config, want := range map[string]struct{ test, live bool }{
		`{"webhook_secrets":["` + testSecret + `"]}`:                                                           {true, true},
		`{"webhook_secrets":["` + testSecret + `"],"livemode":true}`:                                           {false, true},
		`{"webhook_secrets":["` + testSecret + `"],"livemode":false}`:                                          {true, false},
		`{"webhook_secrets":["` + testSecret + `"],"api_key":"sk_test_1"}`:                                     {true, false},
		`{"webhook_secrets":["` + testSecret + `"],"api_key":"rk_live_1"}`:                                     {false, true},
		`{"webhook_secrets":["` + testSecret + `"],"api_key":"sk_test_1","livemode":true}`:                     {false, true},
		`{"webhook_secrets":["` + testSecret + `"],"api_key":"of-a-simulator","base_url":"https://s.example"}`: {true, true},
	} {
		a, err := newAdapter("st", json.RawMessage(config), nil)
		if err != nil {
			t.Fatal(err)
		}
		for event, pays := range map[string]bool{test: want.test, live: want.live, neither: true} {
			got, err := a.Parse(signed(event, suppliertest.Change{}, testSecret), &supplier.Trace{})
			switch {
			case err != nil:
				t.Errorf("%s: %v", config, err)
			case pays && got.Status != supplier.Paid:
				t.Errorf("%s: %+v", config, got)
			case !pays && (got.Status != supplier.Unknown || got.OrderRef != "" || got.TradeNo != "" || got.Amount != 0):
				t.Errorf("%s: an event of the other mode is %+v", config, got)
			}
		}
	}
}

func TestSecondPartialRefundIsAnotherFact(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	first, err1 := a.Parse(signed(eventOf("charge.refunded", charge(500)), suppliertest.Change{}, testSecret), nil)
	second, err2 := a.Parse(signed(eventOf("charge.refunded", charge(900)), suppliertest.Change{}, testSecret), nil)
	if err1 != nil || err2 != nil || first.EventKey == second.EventKey {
		t.Errorf("%v %v: keys %q and %q", err1, err2, first.EventKey, second.EventKey)
	}
}

// While a secret is rolled, Stripe signs with both; an endpoint that knows only
// one of them must still read the message.
func TestOneOfSeveralSignaturesIsEnough(t *testing.T) {
	t.Parallel()
	req := signed(intentEvent(suppliertest.Change{}), suppliertest.Change{}, "whsec_not_ours", testSecret)
	if _, err := newTest(t, testSecret).Parse(req, nil); err != nil {
		t.Error(err)
	}
}

func TestOtherSchemesAreNoSignature(t *testing.T) {
	t.Parallel()
	req := message(suppliertest.Change{})
	req.Header.Set("Stripe-Signature", strings.Replace(req.Header.Get("Stripe-Signature"), "v1=", "v0=", 1))
	var refused *supplier.Refused
	if _, err := newTest(t, testSecret).Parse(req, nil); !errors.As(err, &refused) {
		t.Errorf("a v0 signature is believed: %v", err)
	}
}

func TestPaymentWithoutReadableAmountIsShownToPeople(t *testing.T) {
	t.Parallel()
	_, err := newTest(t, testSecret).Parse(message(suppliertest.Change{Amount: "1e2"}), nil)
	var unreadable *supplier.Unreadable
	if !errors.As(err, &unreadable) || unreadable.Kind != "malformed" || unreadable.Callback.OrderRef != paid.OrderRef ||
		unreadable.Callback.TradeNo != paid.TradeNo || unreadable.Callback.Status != supplier.Other {
		t.Errorf("%v: %+v", err, unreadable)
	}
}

func TestConfigNamesTheWrongField(t *testing.T) {
	t.Parallel()
	for raw, field := range map[string]string{
		`{}`:                                "webhook_secrets",
		`{"webhook_secrets":[]}`:            "webhook_secrets",
		`{"webhook_secrets":["sk_live_1"]}`: "webhook_secrets[0]",
		`{"webhook_secrets":["whsec_a","whsec_"]}`:                               "webhook_secrets[1]",
		`{"webhook_secrets":["whsec_a"],"base_url":"stripe"}`:                    "base_url",
		`{"webhook_secrets":["whsec_a"],"webhook_secret":"whsec_canary"}`:        "webhook_secret",
		`{"webhook_secrets":["whsec_a"],"api_key":"sk","base_url":"ftp://h/pa"}`: "base_url",
	} {
		_, err := Kind.New("st-main", json.RawMessage(raw), nil)
		if f := supplier.AsField(err); f == nil || f.Field != field || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want the field %s", raw, err, field)
		}
	}
}

func TestAccountIsPerSupplierCode(t *testing.T) {
	t.Parallel()
	if got := newTest(t, testSecret).Account(); got != "stripe:st-main" {
		t.Error(got)
	}
}

// FuzzParse sends any header and body to an adapter: only what the secret signed
// may be believed.
func FuzzParse(f *testing.F) {
	genuine := message(suppliertest.Change{})
	f.Add(genuine.Header.Get("Stripe-Signature"), genuine.Body)
	a := newTest(f, testSecret)
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		req := message(suppliertest.Change{})
		req.Header.Set("Stripe-Signature", header)
		req.Body = body
		got, err := a.Parse(req, &supplier.Trace{})
		if err == nil && !reflect.DeepEqual(got, paid) {
			t.Errorf("believed: %+v", got)
		}
	})
}

// FuzzSigned signs any body: what counts as paid must name its amount in digits.
func FuzzSigned(f *testing.F) {
	f.Add([]byte(intentEvent(suppliertest.Change{})))
	f.Add([]byte(eventOf("checkout.session.completed", sessionObject("paid"))))
	f.Add([]byte(eventOf("charge.refunded", charge(500))))
	f.Add([]byte(eventOf("charge.dispute.created", disputed(nil))))
	a := newTest(f, testSecret)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := a.Parse(signed(string(body), suppliertest.Change{}, testSecret), &supplier.Trace{})
		if err == nil && got.Status == supplier.Paid && !strings.Contains(string(body), fmt.Sprint(got.Amount)) {
			t.Errorf("paid %d, which the body does not say", got.Amount)
		}
		if err == nil && (got.Status == supplier.Disputed) != (got.Dispute != nil && got.Dispute.No != "") {
			t.Errorf("%s with the dispute %+v", got.Status, got.Dispute)
		}
		if got.Amount < 0 {
			t.Errorf("a negative amount: %d", got.Amount)
		}
	})
}
