package wechatpay

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

var paid = supplier.Callback{
	EventKey: "4200000000202603010000000001:SUCCESS", OrderRef: "ORDER-20260301-0001",
	TradeNo: "4200000000202603010000000001", Status: supplier.Paid, RawStatus: "SUCCESS",
	Amount: 1999, Currency: "CNY", Identity: map[string]string{"mch_id": testMchID, "app_id": testAppID},
	OccurredAt: suppliertest.Now.Add(-2 * time.Second),
}

func fail(status int, message string) supplier.Reply {
	return supplier.Reply{Status: status, ContentType: "application/json", Body: []byte(`{"code":"FAIL","message":"` + message + `"}`)}
}

func TestAdapterKeepsItsPromises(t *testing.T) {
	t.Parallel()
	stranger := platform{certificateMode(t).key, testPublicKeyID} // the right id, another key
	for mode, p := range map[string]platform{"PublicKey": publicKeyMode(t), "Certificate": certificateMode(t)} {
		t.Run(mode, func(t *testing.T) {
			suppliertest.Run(t, suppliertest.Suite{
				Adapter: newTest(t, nil), // both are live together
				Stranger: newTest(t, func(c *config) {
					c.PublicKey = stranger.publicKey(t)
					c.Certificates = []string{platform{publicKeyMode(t).key, certificateMode(t).serial}.validCertificate(t)}
				}),
				Message:          p.message,
				Want:             paid,
				OtherAmount:      "2000",
				OtherMinor:       2000,
				OtherStatus:      "CLOSED",
				Harmless:         []string{"NOTPAY", "USERPAYING", "ACCEPT"},
				OddAmounts:       []string{`"1999"`, "1999.0", "{}"},
				SignatureHeaders: []string{"Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Serial", "Wechatpay-Signature"},
				Window:           5 * time.Minute,
				Secrets:          []string{testAPIKey},
				Replies: map[supplier.Result]supplier.Reply{
					supplier.Taken: {
						Status: 200, ContentType: "application/json",
						Body: []byte(`{"code":"SUCCESS","message":"OK"}`),
					},
					supplier.BadSignature:   fail(401, "bad signature"),
					supplier.Malformed:      fail(400, "malformed"),
					supplier.Unavailable:    fail(503, "busy, send again"),
					supplier.InternalFailed: fail(500, "internal error, send again"),
				},
			})
		})
	}
}

// The official SDK must accept what the tests build, or they prove nothing of
// WeChat Pay. It judges by the real clock.
func TestOfficialSDKAcceptsOurMessages(t *testing.T) {
	t.Parallel()
	pub, cert := publicKeyMode(t), certificateMode(t)
	block, _ := pem.Decode([]byte(cert.certificate(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))))
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	verifier := verifiers.NewSHA256WithRSACombinedVerifier(
		core.NewCertificateMapWithList([]*x509.Certificate{parsed}), testPublicKeyID, pub.key.PublicKey)
	handler, err := notify.NewRSANotifyHandler(testAPIKey, verifier)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []platform{pub, cert} {
		req := p.message(suppliertest.Change{SignedAt: time.Now()})
		wire, err := http.NewRequest(req.Method, "https://pay.example.com"+req.Path, bytes.NewReader(req.Body))
		if err != nil {
			t.Fatal(err)
		}
		wire.Header = req.Header
		var content map[string]any
		if _, err := handler.ParseNotifyRequest(t.Context(), wire, &content); err != nil || content["trade_state"] != "SUCCESS" {
			t.Errorf("serial %s: %v, content %v", p.serial, err, content)
		}
	}
}

func refund(status string) string {
	return fmt.Sprintf(
		`{"mchid":%q,"out_trade_no":"ORDER-20260301-0001","transaction_id":"4200000000202603010000000001","out_refund_no":"R-1","refund_id":"50000000382026030100000000001","refund_status":%q,"success_time":"2026-03-01T15:59:58+08:00","user_received_account":"支付用户零钱","amount":{"total":1999,"refund":500,"payer_total":1899,"payer_refund":475}}`, testMchID, status)
}

func TestNotificationsMean(t *testing.T) {
	t.Parallel()
	payment := func(s supplier.Status, state string) supplier.Callback {
		c := paid
		c.Status, c.RawStatus, c.EventKey = s, state, paid.TradeNo+":"+state
		return c
	}
	refunded := func(s supplier.Status, event string) supplier.Callback {
		c := paid
		c.Status, c.RawStatus, c.EventKey = s, event, "50000000382026030100000000001:"+event
		c.Amount, c.RefundNo, c.RefundID, c.Identity = 500, "R-1", "50000000382026030100000000001", map[string]string{"mch_id": testMchID}
		c.Refund = refundEvents[event]
		return c
	}
	state := func(word string) string { return transaction(suppliertest.Change{Status: word}) }
	revoked := payment(supplier.Closed, "REVOKED")
	revoked.Reverses = true
	unannounced := payment(supplier.Unknown, "SUCCESS")
	unannounced.RawStatus = "TRANSACTION.PENDING"
	contradicting := refunded(supplier.Unknown, "REFUND.SUCCESS")
	contradicting.RawStatus, contradicting.Refund = "REFUND.SUCCESS with refund_status ABNORMAL", ""
	otherEvent := supplier.Callback{
		EventKey: "EV-2026030116000000001", Status: supplier.Unknown, RawStatus: "PAYSCORE.USER_PAID",
		OccurredAt: suppliertest.Now.Add(-time.Second),
	}
	for name, tc := range map[string]struct {
		event, plain string
		want         supplier.Callback
	}{
		"transaction.success":    {"TRANSACTION.SUCCESS", state("SUCCESS"), paid},
		"transaction.payerror":   {"TRANSACTION.SUCCESS", state("PAYERROR"), payment(supplier.Failed, "PAYERROR")},
		"transaction.closed":     {"TRANSACTION.SUCCESS", state("CLOSED"), payment(supplier.Closed, "CLOSED")},
		"transaction.revoked":    {"TRANSACTION.SUCCESS", state("REVOKED"), revoked},
		"transaction.userpaying": {"TRANSACTION.SUCCESS", state("USERPAYING"), payment(supplier.Other, "USERPAYING")},
		"transaction.unknown":    {"TRANSACTION.PENDING", state("SUCCESS"), unannounced},
		"refund.success":         {"REFUND.SUCCESS", refund("SUCCESS"), refunded(supplier.Refunded, "REFUND.SUCCESS")},
		"transaction.refund":     {"TRANSACTION.SUCCESS", state("REFUND"), payment(supplier.Unknown, "REFUND")},
		"refund.contradicting":   {"REFUND.SUCCESS", refund("ABNORMAL"), contradicting},
		"refund.abnormal":        {"REFUND.ABNORMAL", refund("ABNORMAL"), refunded(supplier.Other, "REFUND.ABNORMAL")},
		"refund.closed":          {"REFUND.CLOSED", refund("CLOSED"), refunded(supplier.Other, "REFUND.CLOSED")},
		"payscore":               {"PAYSCORE.USER_PAID", `{"state":"DONE","amount":"any"}`, otherEvent},
	} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/" + name + ".http"
			suppliertest.Kept(t, path, publicKeyMode(t).signed(envelope(tc.event, tc.plain), suppliertest.Change{}))
			got, err := newTest(t, nil).Parse(suppliertest.Load(t, path), &supplier.Trace{})
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, tc.want)
			}
		})
	}
}

// A combined order (合单支付) is authentic and in a form of its own: it moves nothing and is seen.
func TestACombinedOrderIsOfUnknownType(t *testing.T) {
	t.Parallel()
	a := newTest(t, nil)
	part := func(no string) string {
		return `{"mchid":"1900000109","trade_type":"JSAPI","trade_state":"SUCCESS","out_trade_no":"` + no + `","transaction_id":"T-` + no +
			`","amount":{"total_amount":10,"currency":"CNY","payer_amount":10,"payer_currency":"CNY"}}`
	}
	for parts, want := range map[string][2]string{part("O-1"): {"O-1", "T-O-1"}, part("O-1") + "," + part("O-2"): {"C-1", ""}} {
		plain := `{"combine_appid":"wx8888888888888888","combine_mchid":"1900000109","combine_out_trade_no":"C-1","sub_orders":[` + parts + `]}`
		got, err := a.Parse(publicKeyMode(t).signed(envelope("TRANSACTION.SUCCESS", plain), suppliertest.Change{}), &supplier.Trace{})
		if err != nil || got.Status != supplier.Unknown || got.RawStatus != "TRANSACTION.SUCCESS combine_out_trade_no" ||
			got.OrderRef != want[0] || got.TradeNo != want[1] || got.EventKey == "" {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestPaymentNeverMadeIsKnownByItsOrder(t *testing.T) {
	t.Parallel()
	plain := strings.Replace(transaction(suppliertest.Change{Status: "CLOSED"}), `"transaction_id":"4200000000202603010000000001",`, "", 1)
	got, err := newTest(t, nil).Parse(publicKeyMode(t).signed(envelope("TRANSACTION.SUCCESS", plain), suppliertest.Change{}), nil)
	if err != nil || got.EventKey != "ORDER-20260301-0001:CLOSED" || got.TradeNo != "" {
		t.Errorf("%v %+v", err, got)
	}
}

// The type is not signed: whatever it says, only one is checked.
func TestOnlyOneSignatureTypeCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		types []string
		ok    bool
	}{
		"absent":       {nil, true},
		"the one":      {[]string{"WECHATPAY2-SHA256-RSA2048"}, true},
		"Chinese SM2":  {[]string{"WECHATPAY2-SM2-WITH-SM3"}, false},
		"SHA-1":        {[]string{"WECHATPAY2-SHA1-RSA2048"}, false},
		"another case": {[]string{"wechatpay2-sha256-rsa2048"}, false},
		"empty":        {[]string{""}, false},
		"twice":        {[]string{"WECHATPAY2-SHA256-RSA2048", "WECHATPAY2-SHA256-RSA2048"}, false},
	} {
		req := publicKeyMode(t).message(suppliertest.Change{})
		delete(req.Header, "Wechatpay-Signature-Type")
		for _, value := range c.types {
			req.Header.Add("Wechatpay-Signature-Type", value)
		}
		_, err := newTest(t, nil).Parse(req, &supplier.Trace{})
		var refused *supplier.Refused
		if isRefused := errors.As(err, &refused) && refused.Result == supplier.BadSignature; isRefused == c.ok || err == nil != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A probe is refused even where its signature would hold.
func TestProbeIsRefused(t *testing.T) {
	t.Parallel()
	req := publicKeyMode(t).message(suppliertest.Change{Tamper: func(s string) string { return probePrefix + s }})
	a := newTest(t, nil)
	var trace supplier.Trace
	_, err := a.Parse(req, &trace)
	var refused *supplier.Refused
	if !errors.As(err, &refused) || refused.Result != supplier.BadSignature || a.Reply(refused.Result).Status != 401 {
		t.Errorf("%v", err)
	}
	if len(trace.Steps) != 1 || trace.Steps[0].Code != probe.Key {
		t.Errorf("the trace does not show that it is a probe: %+v", trace)
	}
}

func TestCertificateHoldsOnlyWithinItsDates(t *testing.T) {
	t.Parallel()
	cert, now := certificateMode(t), suppliertest.Now
	for name, tc := range map[string]struct {
		from, to time.Time
		ok       bool
	}{
		"valid":   {now.Add(-time.Hour), now.Add(time.Hour), true},
		"expired": {now.Add(-2 * time.Hour), now.Add(-time.Hour), false},
		"not yet": {now.Add(time.Hour), now.Add(2 * time.Hour), false},
	} {
		a := newTest(t, func(c *config) { c.Certificates = []string{cert.certificate(t, tc.from, tc.to)} })
		if _, err := a.Parse(cert.message(suppliertest.Change{}), nil); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreadableIsShownToPeople(t *testing.T) {
	t.Parallel()
	p := publicKeyMode(t)
	genuine := envelope("TRANSACTION.SUCCESS", transaction(suppliertest.Change{}))
	odd := envelope("TRANSACTION.SUCCESS", transaction(suppliertest.Change{Amount: "1e2"}))
	for name, tc := range map[string]struct {
		body, kind string
		result     supplier.Result
		order      string
	}{
		"another algorithm": {
			strings.Replace(genuine, "AEAD_AES_256_GCM", "AEAD_SM4_GCM", 1), "decrypt_failed", supplier.InternalFailed,
			"",
		},
		"another nonce": {strings.Replace(genuine, "testnonce012", "testnonce013", 1), "decrypt_failed", supplier.InternalFailed, ""},
		"a long nonce":  {strings.Replace(genuine, "testnonce012", "testnonce0123", 1), "decrypt_failed", supplier.InternalFailed, ""},
		"other data": {
			strings.Replace(genuine, `"associated_data":"transaction"`, `"associated_data":"refund"`, 1),
			"decrypt_failed", supplier.InternalFailed, "",
		},
		"no ciphertext": {strings.Replace(genuine, `"ciphertext"`, `"cipher"`, 1), "decrypt_failed", supplier.InternalFailed, ""},
		"doubled name":  {strings.Replace(genuine, `"event_type"`, `"id":"EV-2","event_type"`, 1), "malformed", supplier.Malformed, ""},
		"odd amount":    {odd, "malformed", supplier.Malformed, "ORDER-20260301-0001"},
	} {
		_, err := newTest(t, nil).Parse(p.signed(tc.body, suppliertest.Change{}), nil)
		var u *supplier.Unreadable
		if !errors.As(err, &u) || u.Kind != tc.kind || u.Result != tc.result || u.Callback.OrderRef != tc.order ||
			u.Callback.Status == supplier.Paid {
			t.Errorf("%s: %v %+v", name, err, u)
		}
	}
}

func TestConfigNamesTheWrongField(t *testing.T) {
	t.Parallel()
	valid := certificateMode(t).validCertificate(t)
	for field, change := range map[string]func(*config){
		"mch_id":               func(c *config) { c.MchID = "" },
		"api_v3_key":           func(c *config) { c.APIV3Key = "canary-too-short" },
		"public_key_id":        func(c *config) { c.PublicKeyID = "" },
		"public_key":           func(c *config) { c.PublicKey, c.PublicKeyID, c.Certificates = "", "", nil },
		"certificates[1]":      func(c *config) { c.Certificates = append(c.Certificates, "canary") },
		"certificates[2]":      func(c *config) { c.Certificates = []string{valid, otherCertificate(t), valid} },
		"merchant_private_key": func(c *config) { c.MerchantPrivateKey = "canary" },
		"base_url":             func(c *config) { c.BaseURL = "api.mch.weixin.qq.com" },
	} {
		c := config{
			MchID: testMchID, AppID: testAppID, APIV3Key: testAPIKey, PublicKeyID: testPublicKeyID,
			PublicKey: publicKeyMode(t).publicKey(t), Certificates: []string{valid},
		}
		change(&c)
		raw, _ := json.Marshal(c)
		_, err := Kind.New("wx-main", raw, nil)
		if f := supplier.AsField(err); f == nil || f.Field != field || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want the field %s", err, field)
		}
	}
}

func otherCertificate(tb testing.TB) string {
	return platform{certificateMode(tb).key, "01AB"}.validCertificate(tb)
}

func TestAccountIsTheMerchant(t *testing.T) {
	t.Parallel()
	if got := newTest(t, nil).Account(); got != "wechatpay:"+testMchID {
		t.Error(got)
	}
}

// FuzzParse sends any headers and body: only what the platform signed may be
// believed.
func FuzzParse(f *testing.F) {
	p := publicKeyMode(f)
	genuine := p.message(suppliertest.Change{})
	h := genuine.Header
	f.Add(h.Get("Wechatpay-Timestamp"), h.Get("Wechatpay-Nonce"), h.Get("Wechatpay-Serial"), h.Get("Wechatpay-Signature"), genuine.Body)
	a := newTest(f, nil)
	f.Fuzz(func(t *testing.T, stamp, nonce, serial, signature string, body []byte) {
		req := &supplier.Request{Method: http.MethodPost, Body: body, ReceivedAt: suppliertest.Now, Header: http.Header{
			"Wechatpay-Timestamp": {stamp}, "Wechatpay-Nonce": {nonce}, "Wechatpay-Serial": {serial}, "Wechatpay-Signature": {signature},
		}}
		if got, err := a.Parse(req, &supplier.Trace{}); err == nil && !reflect.DeepEqual(got, paid) {
			t.Errorf("believed: %+v", got)
		}
	})
}

// FuzzSigned signs any event and resource: what counts as paid must name its
// amount in digits.
func FuzzSigned(f *testing.F) {
	f.Add("TRANSACTION.SUCCESS", transaction(suppliertest.Change{}))
	f.Add("REFUND.SUCCESS", refund("SUCCESS"))
	p, a := publicKeyMode(f), newTest(f, nil)
	f.Fuzz(func(t *testing.T, event, plain string) {
		got, err := a.Parse(p.signed(envelope(event, plain), suppliertest.Change{}), &supplier.Trace{})
		if err == nil && got.Status == supplier.Paid && !strings.Contains(plain, fmt.Sprint(got.Amount)) {
			t.Errorf("paid %d, which the resource does not say", got.Amount)
		}
	})
}
