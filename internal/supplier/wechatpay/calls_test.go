package wechatpay

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/validators"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

const testSerial = "3775B6A45ACD588826D15E583A95F5DD0B1FC2F1"

// keysForCalls adds what calls need to a config.
func keysForCalls(tb testing.TB) func(*config) {
	return func(c *config) {
		der := loadKey(tb, "testdata/test-only-merchant.pem")
		c.MerchantSerial, c.MerchantPrivateKey = testSerial, pemOf(tb, der)
	}
}

func calling(tb testing.TB, out supplier.Client, change func(*config)) supplier.Adapter {
	tb.Helper()
	return newTestOut(tb, out, func(c *config) {
		keysForCalls(tb)(c)
		if change != nil {
			change(c)
		}
	})
}

// quick is calling with an adapter that signs nothing.
func quick(tb testing.TB, out supplier.Client, change func(*config)) supplier.Adapter {
	a := calling(tb, out, change)
	a.(*adapter).key = suppliertest.NoSigner{}
	return a
}

// answer signs a body as WeChat Pay signs what it answers.
func (p platform) answer(status int, body string, c suppliertest.Change) supplier.Exchange {
	header := p.signed(body, c).Header
	header.Del("User-Agent")
	header.Set("Request-ID", "08F5B8C2B506102C18FDDFEEA30620BE821E28EDC405-0")
	return supplier.Exchange{Status: status, Header: header, Body: []byte(body)}
}

// queried is the answer to a query: the transaction as a notification describes it.
func queried(c suppliertest.Change) string {
	c.OrderRef = cmp.Or(c.OrderRef, suppliertest.Reference)
	body := strings.Replace(transaction(c), "ORDER-20260301-OTHER", "SO20260301000009", 1)
	if c.Status != "" && c.Status != "SUCCESS" && c.Status != "REFUND" {
		body = strings.Replace(body, `"transaction_id":"4200000000202603010000000001",`, "", 1)
	}
	for part, text := range map[string]string{
		"OrderRef": `"out_trade_no":"` + c.OrderRef + `",`, "TradeNo": `"transaction_id":"4200000000202603010000000001",`,
		"Amount": `"total":1999,`, "Currency": `"currency":"CNY",`, "Status": `"trade_state":"SUCCESS",`,
	} {
		if c.Without == part {
			body = strings.Replace(body, text, "", 1)
		}
	}
	return body
}

const codeURL = `{"code_url":"weixin://wxpay/bizpayurl?pr=testOnly0001"}`

// answers builds the suite's answers for payments by QR code or, where prepaid, for an
// application's.
func (p platform) answers(start string) func(suppliertest.Op, suppliertest.Change) supplier.Exchange {
	return func(op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
		switch op {
		case suppliertest.Pay:
			if c.Duplicate {
				return p.answer(http.StatusOK, strings.TrimSuffix(start, "}")+","+strings.TrimPrefix(start, "{"), c)
			}
			return p.answer(http.StatusOK, start, c)
		case suppliertest.Query:
			return p.answer(http.StatusOK, queried(c), c)
		case suppliertest.Refund, suppliertest.RefundQuery:
			return p.answer(http.StatusOK, refunded(c), c)
		default:
			return p.answer(http.StatusNoContent, "", c)
		}
	}
}

// statuses are those of the answers that are wanted.
var statuses = map[suppliertest.Op]int{
	suppliertest.Pay: http.StatusOK, suppliertest.Query: http.StatusOK,
	suppliertest.Close: http.StatusNoContent, suppliertest.Refund: http.StatusOK, suppliertest.RefundQuery: http.StatusOK,
}

func refusal(code string) string { return fmt.Sprintf(`{"code":%q,"message":"测试"}`, code) }

// cases are all words of the tables, and errors.
func (p platform) cases() []suppliertest.AnswerCase {
	var cases []suppliertest.AnswerCase
	for word, want := range map[string]struct {
		state supplier.AnswerState
		total int64
	}{
		"SUCCESS": {supplier.AnswerPaid, 0}, "REFUND": {supplier.AnswerPaid, supplier.UnknownTotal},
		"NOTPAY": {supplier.AnswerPaying, 0}, "USERPAYING": {supplier.AnswerPaying, 0}, "ACCEPT": {supplier.AnswerPaying, 0},
		"PAYERROR": {supplier.AnswerPaying, 0}, "CLOSED": {supplier.AnswerClosed, 0}, "REVOKED": {supplier.AnswerClosed, 0},
	} {
		cases = append(cases, suppliertest.AnswerCase{
			Name: word, Op: suppliertest.Query, Answer: p.answer(http.StatusOK, queried(suppliertest.Change{Status: word}),
				suppliertest.Change{}),
			State: string(want.state), RefundTotal: want.total, Class: supplier.ClassOK,
		})
	}
	add := func(op suppliertest.Op, status int, code, state string, class supplier.Class) {
		cases = append(cases, suppliertest.AnswerCase{
			Name: fmt.Sprint(status, " ", code), Op: op, Answer: p.answer(status, refusal(code), suppliertest.Change{}), State: state,
			Class: class,
		})
	}
	add(suppliertest.Query, 404, "ORDER_NOT_EXIST", "not_found", supplier.ClassOK)
	add(suppliertest.Query, 200, "ORDER_NOT_EXIST", "unknown", supplier.ClassBadAnswer)
	add(suppliertest.Query, 500, "ORDER_NOT_EXIST", "unknown", supplier.ClassUnknown)
	add(suppliertest.Query, 404, "RESOURCE_NOT_EXISTS", "unknown", supplier.ClassRefused)
	add(suppliertest.Query, 401, "SIGN_ERROR", "unknown", supplier.ClassRefused)
	add(suppliertest.Query, 429, "FREQUENCY_LIMITED", "unknown", supplier.ClassUnknown)
	add(suppliertest.Query, 500, "SYSTEM_ERROR", "unknown", supplier.ClassUnknown)
	// A trade_state is not read from the tables of events and errors.
	for _, word := range []string{"REFUND.SUCCESS", "404 ORDER_NOT_EXIST", "ORDER_NOT_EXIST"} {
		answer := p.answer(http.StatusOK, queried(suppliertest.Change{Status: word}), suppliertest.Change{})
		cases = append(cases, suppliertest.AnswerCase{
			Name: word + " as a state", Op: suppliertest.Query, Answer: answer, State: "unknown",
			Class: supplier.ClassUnknown,
		})
	}
	for _, code := range []string{"ORDERPAID", "ORDER_PAID", "ORDER_CLOSED", "ORDER_NOT_EXIST", "USERPAYING", "INVALID_REQUEST"} {
		add(suppliertest.Close, 400, code, "unknown", supplier.ClassRefused)
	}
	add(suppliertest.Close, 404, "ORDER_NOT_EXIST", "not_found", supplier.ClassRefused)
	add(suppliertest.Close, 500, "SYSTEM_ERROR", "unknown", supplier.ClassUnknown)
	cases = append(cases, p.refundCases()...)
	add(suppliertest.Close, 200, "SUCCESS", "unknown", supplier.ClassUnknown)
	for code := range refusals {
		add(suppliertest.Pay, 400, code, "refused", supplier.ClassRefused)
		add(suppliertest.Pay, 500, code, "unknown", supplier.ClassUnknown)
		add(suppliertest.Pay, 200, code, "unknown", supplier.ClassBadAnswer)
	}
	for _, code := range []string{"ORDERPAID", "OUT_TRADE_NO_USED", "ORDER_CLOSED", "INVALID_REQUEST", "TRADE_ERROR", "ORDER_NOT_EXIST"} {
		add(suppliertest.Pay, 403, code, "unknown", supplier.ClassRefused)
	}
	add(suppliertest.Pay, 429, "FREQUENCY_LIMITED", "unknown", supplier.ClassUnknown)
	cases = append(
		cases,
		suppliertest.AnswerCase{
			Name: "unsigned refusal", Op: suppliertest.Pay, State: "unknown", Class: supplier.ClassBadSignature,
			Answer: supplier.Exchange{Status: 400, Body: []byte(refusal("PARAM_ERROR"))},
		},
		suppliertest.AnswerCase{
			Name: "unsigned not found", Op: suppliertest.Query, State: "unknown", Class: supplier.ClassBadSignature,
			Answer: supplier.Exchange{Status: 404, Body: []byte(refusal("ORDER_NOT_EXIST"))},
		},
		suppliertest.AnswerCase{
			Name: "unsigned close", Op: suppliertest.Close, State: "unknown", Class: supplier.ClassBadSignature,
			Answer: supplier.Exchange{Status: 204},
		},
		suppliertest.AnswerCase{
			Name: "gateway's page", Op: suppliertest.Query, State: "unknown", Class: supplier.ClassBadAnswer,
			Answer: supplier.Exchange{Status: 502, Body: []byte("<html>")},
		},
		suppliertest.AnswerCase{
			Name: "another merchant", Op: suppliertest.Query, State: "unknown", Class: supplier.ClassBadAnswer,
			Answer: p.answer(200, queried(suppliertest.Change{Account: "1900000002"}), suppliertest.Change{}),
		},
	)
	return cases
}

func (p platform) abilities(t *testing.T) suppliertest.Abilities {
	settled := supplier.Callback{
		EventKey: "4200000000202603010000000001:SUCCESS", OrderRef: suppliertest.Reference, TradeNo: "4200000000202603010000000001",
		Status: supplier.Paid, RawStatus: "SUCCESS", Amount: 1999, Currency: "CNY",
		Identity: paid.Identity, OccurredAt: paid.OccurredAt,
	}
	key, _ := json.Marshal(pemOf(t, loadKey(t, "testdata/test-only-merchant.pem")))
	return suppliertest.Abilities{
		New: func(out supplier.Client) supplier.Adapter { return quick(t, out, nil) },
		Stranger: func(out supplier.Client) supplier.Adapter {
			return quick(t, out, func(c *config) {
				c.PublicKey = platform{certificateMode(t).key, testPublicKeyID}.publicKey(t)
				c.Certificates = []string{platform{publicKeyMode(t).key, certificateMode(t).serial}.validCertificate(t)}
			})
		},
		Payment: supplier.Payment{
			Subject: "测试 & <商品>", Amount: 1999, Currency: "CNY",
			NotifyURL: "https://pay.example.com/callback/wx-main",
		},
		Answer: p.answers(codeURL),
		Refund: supplier.Refund{TradeNo: "4200000000202603010000000001", Amount: 500, Total: 1999, Currency: "CNY", Reason: "测试"},
		Refunded: map[suppliertest.Op]supplier.RefundAnswer{
			suppliertest.Refund:      {State: supplier.RefundSucceeded, SupplierNo: "50000000382019052709732678859", Word: "SUCCESS"},
			suppliertest.RefundQuery: {State: supplier.RefundSucceeded, SupplierNo: "50000000382019052709732678859", Word: "SUCCESS"},
		},
		Has: map[suppliertest.Op][]string{
			suppliertest.Pay: {"Duplicate"}, suppliertest.Close: {},
			suppliertest.Query:       {"OrderRef", "TradeNo", "Amount", "Currency", "Status", "Account", "Duplicate"},
			suppliertest.Refund:      {"OrderRef", "RefundNo", "Amount", "Status", "Duplicate"},
			suppliertest.RefundQuery: {"OrderRef", "RefundNo", "Amount", "Status", "Duplicate"},
		},
		Signed: func(op suppliertest.Op, body []byte) supplier.Exchange {
			return p.answer(statuses[op], string(body), suppliertest.Change{})
		},
		Started: supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: "weixin://wxpay/bizpayurl?pr=testOnly0001"},
		Says:    settled,
		Closed: supplier.Callback{
			EventKey: suppliertest.Reference + ":CLOSED", OrderRef: suppliertest.Reference, Status: supplier.Closed, RawStatus: "CLOSED",
			Identity: paid.Identity,
		},
		Cases:            p.cases(),
		SignatureHeaders: []string{"Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Serial", "Wechatpay-Signature"},
		Window:           5 * time.Minute,
		Secrets:          []string{testAPIKey, string(key[1:80]), "PRIVATE KEY", testSerial},
	}
}

func TestCallsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	t.Run("PublicKey", func(t *testing.T) { suppliertest.RunAbilities(t, publicKeyMode(t).abilities(t)) })
	t.Run("Certificate", func(t *testing.T) {
		s := certificateMode(t).abilities(t)
		s.Has = map[suppliertest.Op][]string{suppliertest.Close: {}} // the verifier is the same for all
		suppliertest.RunAbilities(t, s)
	})
	t.Run("App", func(t *testing.T) {
		s := publicKeyMode(t).abilities(t)
		s.Payment.Method, s.Payment.Payer = supplier.MethodApp, "oTestOnly0001"
		s.Answer = publicKeyMode(t).answers(`{"prepay_id":"wx01160000testOnly"}`)
		s.Started = supplier.Started{State: supplier.Accepted, Kind: supplier.ValueClientSecret, Value: "*"}
		s.Has = map[suppliertest.Op][]string{suppliertest.Pay: {"Duplicate"}} // the other calls are the same
		suppliertest.RunAbilities(t, s)
	})
}

// sent makes one call and returns its request.
func sent(t *testing.T, change func(*config), call func(supplier.Abilities) error) suppliertest.Sent {
	t.Helper()
	line := &suppliertest.Line{Reply: func(*http.Request,
		[]byte,
	) supplier.Exchange {
		return supplier.Exchange{Class: supplier.ClassTimeout}
	}}
	if err := call(supplier.AbilitiesOf(calling(t, line, change))); err != nil || len(line.Sent()) != 1 {
		t.Fatalf("%v, %d requests", err, len(line.Sent()))
	}
	return line.Sent()[0]
}

var whole = supplier.Payment{
	Reference: suppliertest.Reference, OrderNo: "SO20260301000001", Subject: strings.Repeat("书", 50), Amount: 1999, Currency: "CNY",
	NotifyURL: "https://pay.example.com/callback/wx-main", ClientIP: "203.0.113.9",
	CreatedAt: suppliertest.Now, ExpiresAt: time.Date(2026, 3, 1, 8, 30, 59, 999_999_999, time.UTC),
}

func TestRequestsAreAsDocumented(t *testing.T) {
	t.Parallel()
	ref := supplier.Ref{Reference: suppliertest.Reference}
	refund := supplier.Refund{
		No: suppliertest.RefundNo, Reference: suppliertest.Reference, Amount: 500, Total: 1999, Currency: "CNY",
		Reason:    strings.Repeat("书", 50),
		NotifyURL: "https://pay.example.com/callback/wx-main",
	}
	for name, c := range map[string]struct {
		call         func(supplier.Abilities) error
		method, path string
		body         string
	}{
		"native": {
			func(a supplier.Abilities) error { _, err := a.Start(t.Context(), whole); return err },
			"POST", "/v3/pay/transactions/native",
			`{"appid":"` + testAppID + `","mchid":"1900000001","description":"` + strings.Repeat("书", 42) +
				`","out_trade_no":"SO20260301000001_2","time_expire":"2026-03-01T16:30:59+08:00","notify_url":"https://pay.example.com/callback/wx-main","amount":{"total":1999,"currency":"CNY"}}`,
		},
		"jsapi": {
			func(a supplier.Abilities) error {
				p := whole
				p.Method, p.Payer, p.Subject = supplier.MethodApp, "oTestOnly0001", ""
				_, err := a.Start(t.Context(), p)
				return err
			},
			"POST", "/v3/pay/transactions/jsapi",
			`{"appid":"` + testAppID +
				`","mchid":"1900000001","description":"SO20260301000001","out_trade_no":"SO20260301000001_2","time_expire":"2026-03-01T16:30:59+08:00","notify_url":"https://pay.example.com/callback/wx-main","amount":{"total":1999,"currency":"CNY"},"payer":{"openid":"oTestOnly0001"}}`,
		},
		"refund": {
			func(a supplier.Abilities) error { _, err := a.Refund(t.Context(), refund); return err },
			"POST", "/v3/refund/domestic/refunds",
			`{"out_trade_no":"SO20260301000001_2","out_refund_no":"R20260301000001","reason":"` + strings.Repeat("书", 26) +
				`","notify_url":"https://pay.example.com/callback/wx-main","amount":{"refund":500,"total":1999,"currency":"CNY"}}`,
		},
		"refund query": {
			func(a supplier.Abilities) error { _, err := a.RefundQuery(t.Context(), refund); return err },
			"GET", "/v3/refund/domestic/refunds/R20260301000001", "",
		},
		"query": {
			func(a supplier.Abilities) error { _, err := a.Query(t.Context(), ref); return err },
			"GET", "/v3/pay/transactions/out-trade-no/SO20260301000001_2?mchid=1900000001", "",
		},
		"close": {
			func(a supplier.Abilities) error { _, err := a.Close(t.Context(), ref); return err },
			"POST", "/v3/pay/transactions/out-trade-no/SO20260301000001_2/close", `{"mchid":"1900000001"}`,
		},
	} {
		for base, prefix := range map[string]string{
			"":                          "https://api.mch.weixin.qq.com",
			"https://proxy.example/wx/": "https://proxy.example/wx",
		} {
			s := sent(t, func(cfg *config) { cfg.BaseURL = base }, c.call)
			if s.Request.Method != c.method || s.Request.URL.String() != prefix+c.path || string(s.Body) != c.body {
				t.Errorf("%s: %s %s\n%s", name, s.Request.Method, s.Request.URL, s.Body)
			}
			if s.Request.Header.Get("Accept") != "application/json" || s.Request.Header.Get("User-Agent") == "" ||
				(s.Request.Header.Get("Content-Type") == "application/json") != (c.body != "") ||
				s.Request.Header.Get("Wechatpay-Serial") != testPublicKeyID {
				t.Errorf("%s: headers %v", name, s.Request.Header)
			}
			authorized(t, s)
		}
	}
}

var authorization = regexp.MustCompile(
	`^WECHATPAY2-SHA256-RSA2048 mchid="1900000001",nonce_str="([0-9A-Za-z]{16,32})",timestamp="([0-9]{10})",serial_no="` + testSerial +
		`",signature="([^"]+)"$`)

// authorized checks the request's signature with the merchant's public key.
func authorized(t *testing.T, s suppliertest.Sent) {
	t.Helper()
	m := authorization.FindStringSubmatch(s.Request.Header.Get("Authorization"))
	if m == nil {
		t.Fatalf("Authorization: %s", s.Request.Header.Get("Authorization"))
	}
	signature, err := base64.StdEncoding.DecodeString(m[3])
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(s.Request.Method + "\n" + s.Request.URL.RequestURI() + "\n" + m[2] + "\n" + m[1] + "\n" +
		string(s.Body) + "\n"))
	public := &loadKey(t, "testdata/test-only-merchant.pem").PublicKey
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature); err != nil {
		t.Errorf("%s %s: %v", s.Request.Method, s.Request.URL, err)
	}
}

func TestWhatTheClientGetsIsSigned(t *testing.T) {
	t.Parallel()
	p := whole
	p.Method, p.Payer = supplier.MethodApp, "oTestOnly0001"
	line := &suppliertest.Line{Reply: func(*http.Request, []byte) supplier.Exchange {
		return publicKeyMode(t).answer(200, `{"prepay_id":"wx01160000testOnly"}`, suppliertest.Change{})
	}}
	s, err := supplier.AbilitiesOf(calling(t, line, nil)).Start(t.Context(), p)
	var v struct{ AppID, TimeStamp, NonceStr, Package, SignType, PaySign string }
	if err != nil || json.Unmarshal([]byte(s.Value), &v) != nil {
		t.Fatalf("%v %+v", err, s)
	}
	if v.AppID != testAppID || v.Package != "prepay_id=wx01160000testOnly" || v.SignType != "RSA" || len(v.NonceStr) < 16 ||
		len(v.NonceStr) > 32 {
		t.Errorf("%s", s.Value)
	}
	signature, _ := base64.StdEncoding.DecodeString(v.PaySign)
	digest := sha256.Sum256([]byte(v.AppID + "\n" + v.TimeStamp + "\n" + v.NonceStr + "\n" + v.Package + "\n"))
	if err := rsa.VerifyPKCS1v15(&loadKey(t, "testdata/test-only-merchant.pem").PublicKey, crypto.SHA256, digest[:],
		signature); err != nil {
		t.Errorf("paySign: %v", err)
	}
}

// The official SDK must accept the answers that the tests build. It judges by the real
// clock.
func TestOfficialSDKAcceptsOurAnswers(t *testing.T) {
	t.Parallel()
	pub := publicKeyMode(t)
	validator := validators.NewWechatPayResponseValidator(verifiers.NewSHA256WithRSAPubkeyVerifier(testPublicKeyID, pub.key.PublicKey))
	for _, op := range []suppliertest.Op{suppliertest.Pay, suppliertest.Query, suppliertest.Close, suppliertest.Refund} {
		x := pub.answers(codeURL)(op, suppliertest.Change{SignedAt: time.Now()})
		wire := &http.Response{StatusCode: x.Status, Header: x.Header, Body: io.NopCloser(strings.NewReader(string(x.Body)))}
		if err := validator.Validate(context.Background(), wire); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestWhatCannotBeExpressedIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field  string
		change func(*supplier.Payment)
	}{
		"short":       {"order_no", func(p *supplier.Payment) { p.Reference = "SO001" }},
		"long":        {"order_no", func(p *supplier.Payment) { p.Reference = strings.Repeat("S", 33) }},
		"slash":       {"order_no", func(p *supplier.Payment) { p.Reference = "SO2026/0301" }},
		"dollars":     {"currency", func(p *supplier.Payment) { p.Currency = "USD" }},
		"nothing":     {"amount", func(p *supplier.Payment) { p.Amount = 0 }},
		"redirect":    {"method", func(p *supplier.Payment) { p.Method = supplier.MethodRedirect }},
		"no openid":   {"payer", func(p *supplier.Payment) { p.Method = supplier.MethodApp }},
		"other words": {"method", func(p *supplier.Payment) { p.Method = "QR" }},
	} {
		line := &suppliertest.Line{}
		p := whole
		c.change(&p)
		s, err := supplier.AbilitiesOf(calling(t, line, nil)).Start(t.Context(), p)
		if f := supplier.AsField(err); f == nil || f.Field != c.field || s.State != "" || len(line.Sent()) > 0 {
			t.Errorf("%s: %v %+v", name, err, s)
		}
	}
	a := supplier.AbilitiesOf(calling(t, &suppliertest.Line{}, nil))
	for _, call := range []func(context.Context, supplier.Ref) (supplier.Answer, error){a.Query, a.Close} {
		if _, err := call(t.Context(), supplier.Ref{Reference: "a/../b?c=d"}); supplier.AsField(err) == nil {
			t.Errorf("%v", err)
		}
	}
}

func TestAbilitiesNeedTheirKeys(t *testing.T) {
	t.Parallel()
	if got := supplier.AbilitiesOf(newTest(t, nil)); got != (supplier.Abilities{}) {
		t.Errorf("without keys: %+v", got)
	}
	got := supplier.AbilitiesOf(calling(t, &suppliertest.Line{}, nil))
	if got.Payer == nil || got.Querier == nil || got.Closer == nil || got.CloseAfter != 5*time.Minute {
		t.Errorf("with keys: %+v", got)
	}
	if got = supplier.AbilitiesOf(calling(t, &suppliertest.Line{}, func(c *config) { c.AppID = "" })); got.Payer != nil ||
		got.Querier == nil || got.Closer == nil {
		t.Errorf("without app_id: %+v", got)
	}
	for name, c := range map[string]struct {
		field  string
		change func(*config)
	}{
		"key without serial":  {"merchant_serial", func(c *config) { c.MerchantSerial = "" }},
		"serial without key":  {"merchant_private_key", func(c *config) { c.MerchantPrivateKey = "" }},
		"a key id as serial":  {"merchant_serial", func(c *config) { c.MerchantSerial = testPublicKeyID }},
		"a public key as key": {"merchant_private_key", func(c *config) { c.MerchantPrivateKey = c.PublicKey }},
	} {
		config := testConfig(t)
		keysForCalls(t)(&config)
		c.change(&config)
		raw, _ := json.Marshal(config)
		_, err := Kind.New("wx-main", raw, nil)
		if f := supplier.AsField(err); f == nil || f.Field != c.field {
			t.Errorf("%s: %v, want the field %s", name, err, c.field)
		}
	}
}

func TestSettingsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	p := publicKeyMode(t)
	serial, key := map[string]any{"merchant_serial": testSerial}, pemOf(t, loadKey(t, "testdata/test-only-merchant.pem"))
	suppliertest.RunSettings(t, suppliertest.Settings{
		Kind: Kind,
		Bare: map[string]any{
			"mch_id": testMchID, "app_id": testAppID, "api_v3_key": testAPIKey, "public_key_id": testPublicKeyID,
			"public_key": p.publicKey(t),
		},
		Calls: map[string]any{"merchant_serial": testSerial, "merchant_private_key": key, "base_url": "https://wx.example"},
		WrongCalls: map[string][]map[string]any{
			"merchant_private_key": {
				serial,
				{"base_url": "https://wx.example"},
				{"merchant_private_key": "canary"},
				{"merchant_private_key": p.publicKey(t), "merchant_serial": testSerial},
			},
			"merchant_serial": {{"merchant_private_key": key}, {"merchant_private_key": key, "merchant_serial": testPublicKeyID}},
			"base_url": {{"base_url": "wx.example"}, {
				"base_url": "wx.example", "merchant_private_key": key,
				"merchant_serial": testSerial,
			}},
		},
		Wrong: []map[string]any{
			{"mch_id": ""},
			{"api_v3_key": "short"},
			{"public_key": "x"},
			{"public_key_id": ""},
			{"merchant_key": "x"},
		},
		Message: p.message(suppliertest.Change{}), Want: paid,
	})
}

// FuzzAnswer signs any answer to a query: what counts as paid must name its amount in
// digits, and the order that was asked for.
func FuzzAnswer(f *testing.F) {
	f.Add(200, queried(suppliertest.Change{}))
	f.Add(404, refusal("ORDER_NOT_EXIST"))
	p := publicKeyMode(f)
	var answer supplier.Exchange
	a := supplier.AbilitiesOf(quick(f, suppliertest.Client(func(*http.Request) supplier.Exchange { return answer }), nil))
	f.Fuzz(func(t *testing.T, status int, body string) {
		answer = p.answer(status, body, suppliertest.Change{})
		got, err := a.Query(t.Context(), supplier.Ref{Reference: suppliertest.Reference})
		switch {
		case err != nil:
			t.Error(err)
		case got.State == supplier.AnswerPaid && !strings.Contains(body, fmt.Sprint(got.Says.Amount)):
			t.Errorf("paid %d, which is not in the answer", got.Says.Amount)
		case got.State != supplier.AnswerUnknown && got.Says.OrderRef != suppliertest.Reference:
			t.Errorf("%s of %q", got.State, got.Says.OrderRef)
		case got.State == supplier.AnswerNotFound && status != 404:
			t.Errorf("not found under HTTP %d", status)
		}
	})
}
