package alipay

import (
	"cmp"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/smartwalle/alipay/v3"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// Numbers of the tests only.
const (
	testAppID    = "2021000000000001"
	testSellerID = "2088000000000001"
)

func loadKey(tb testing.TB, name string) *rsa.PrivateKey {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := supplier.ParsePrivateKey(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// publicText is the bare base64 that Alipay's console shows.
func publicText(tb testing.TB, key *rsa.PrivateKey) string {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

func privateText(tb testing.TB, key *rsa.PrivateKey) string {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

func newTest(tb testing.TB, key *rsa.PrivateKey) supplier.Adapter {
	tb.Helper()
	raw, _ := json.Marshal(config{AppID: testAppID, SellerID: testSellerID, AlipayPublicKey: publicText(tb, key)})
	a, err := Kind.New("ali-main", raw, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// trade is a paid trade as Alipay tells of it, with spaces, Chinese and JSON in
// its values.
func trade(c suppliertest.Change) url.Values {
	f := url.Values{}
	for name, value := range map[string]string{
		"app_id":           testAppID,
		"auth_app_id":      testAppID,
		"body":             "",
		"buyer_id":         "2088000000000002",
		"buyer_pay_amount": "18.99",
		"charset":          "utf-8",
		"fund_bill_list":   `[{"amount":"18.99","fundChannel":"ALIPAYACCOUNT"}]`,
		"gmt_create":       "2026-03-01 15:59:40",
		"gmt_payment":      "2026-03-01 15:59:58",
		"notify_id":        "2026030100222155958000001400000001",
		"notify_time":      "2026-03-01 15:59:59",
		"notify_type":      "trade_status_sync",
		"out_trade_no":     cmp.Or(c.OrderRef, "ORDER-20260301-0001"),
		"point_amount":     "0.00",
		"seller_id":        cmp.Or(c.Account, testSellerID),
		"subject":          "测试商品 1 + 1",
		"total_amount":     cmp.Or(c.Amount, "19.99"),
		"trade_no":         cmp.Or(c.TradeNo, "2026030122001400000000000001"),
		"trade_status":     cmp.Or(c.Status, "TRADE_SUCCESS"),
		"version":          "1.0",
	} {
		f.Set(name, value)
	}
	return f
}

// sign adds sign and sign_type as Alipay does.
func sign(key *rsa.PrivateKey, f url.Values, tamper func(string) string) url.Values {
	single := map[string]string{}
	for name := range f {
		single[name] = f.Get(name)
	}
	digest := sha256.Sum256([]byte(signedText(single)))
	raw, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	signature := base64.StdEncoding.EncodeToString(raw)
	if tamper != nil {
		signature = tamper(signature)
	}
	f = maps.Clone(f)
	f.Set("sign", signature)
	f.Set("sign_type", "RSA2")
	return f
}

func post(f url.Values) *supplier.Request {
	return &supplier.Request{
		Method: http.MethodPost, Path: "/callback/ali-main", Body: []byte(f.Encode()), ReceivedAt: suppliertest.Now,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}, "User-Agent": {"Mozilla/4.0"}},
	}
}

func messageBuilder(tb testing.TB) func(suppliertest.Change) *supplier.Request {
	key := loadKey(tb, "test-only-alipay.pem")
	return func(c suppliertest.Change) *supplier.Request {
		req := post(sign(key, trade(c), c.Tamper))
		if c.Duplicate {
			req.Body = append(req.Body, "&out_trade_no=ORDER-20260301-OTHER"...)
		}
		return req
	}
}

var paid = supplier.Callback{
	EventKey: "2026030122001400000000000001:TRADE_SUCCESS", OrderRef: "ORDER-20260301-0001",
	TradeNo: "2026030122001400000000000001", Status: supplier.Paid, RawStatus: "TRADE_SUCCESS",
	Amount: 1999, Currency: "CNY", Identity: map[string]string{"app_id": testAppID, "seller_id": testSellerID},
	OccurredAt: suppliertest.Now.Add(-2 * time.Second),
}

func fail(status int) supplier.Reply {
	return supplier.Reply{Status: status, ContentType: "text/plain", Body: []byte("fail")}
}

func TestAdapterKeepsItsPromises(t *testing.T) {
	t.Parallel()
	suppliertest.Run(t, suppliertest.Suite{
		Adapter:     newTest(t, loadKey(t, "test-only-alipay.pem")),
		Stranger:    newTest(t, loadKey(t, "test-only-stranger.pem")),
		Message:     messageBuilder(t),
		Want:        paid,
		OtherAmount: "20",
		OtherMinor:  2000,
		OtherStatus: "TRADE_FINISHED",
		Harmless:    []string{"WAIT_BUYER_PAY"},
		OddAmounts:  []string{"19.990", " 19.99", "19.99 ", "19,99", "１９.99", "19.99\n", "0019.99"},
		Replies: map[supplier.Result]supplier.Reply{
			supplier.Taken:          {Status: 200, ContentType: "text/plain", Body: []byte("success")},
			supplier.BadSignature:   fail(401),
			supplier.Malformed:      fail(400),
			supplier.Unavailable:    fail(503),
			supplier.InternalFailed: fail(500),
		},
	})
}

// A library that merchants use with the real Alipay must accept what the tests
// build. It leaves out empty values, so the message here has none.
func TestKnownLibraryAcceptsOurMessages(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	client, err := sdk.New(testAppID, privateText(t, loadKey(t, "test-only-stranger.pem")), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.LoadAliPayPublicKey(publicText(t, key)); err != nil {
		t.Fatal(err)
	}
	f := trade(suppliertest.Change{})
	f.Del("body")
	if err := client.VerifySign(t.Context(), sign(key, f, nil)); err != nil {
		t.Error(err)
	}
}

func TestNotificationsMean(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	refundFields := map[string]string{"gmt_refund": "2026-03-01 15:59:58.123", "refund_fee": "5.00", "out_biz_no": "R-1"}
	with := func(status string, extra map[string]string) url.Values {
		f := trade(suppliertest.Change{Status: status})
		for name, value := range extra {
			f.Set(name, value)
		}
		return f
	}
	want := func(s supplier.Status, raw, key string, amount int64, at time.Time) supplier.Callback {
		c := paid
		c.Status, c.RawStatus, c.EventKey, c.Amount, c.OccurredAt = s, raw, paid.TradeNo+":"+key, amount, at
		return c
	}
	refundAt := paid.OccurredAt.Add(123 * time.Millisecond)
	part := want(supplier.Paid, "TRADE_SUCCESS", "TRADE_SUCCESS:R-1/5.00", 1999, paid.OccurredAt)
	full := want(supplier.Refunded, "TRADE_CLOSED", "TRADE_CLOSED:R-1/", 1999, refundAt)
	finished := want(supplier.Paid, "TRADE_FINISHED", "TRADE_FINISHED:R-1/5.00", 1999, paid.OccurredAt)
	part.RefundNo, full.RefundNo, finished.RefundNo = "R-1", "R-1", "R-1"
	unnumbered := want(supplier.Paid, "TRADE_SUCCESS", "TRADE_SUCCESS:2026-03-01 15:59:58/5.00", 1999, paid.OccurredAt)
	part.RefundTotal, full.RefundTotal, finished.RefundTotal, unnumbered.RefundTotal = 500, 1999, 500, 500
	closed := want(supplier.Closed, "TRADE_CLOSED", "TRADE_CLOSED", 1999, paid.OccurredAt)
	closed.Reverses = true
	for name, tc := range map[string]struct {
		fields url.Values
		want   supplier.Callback
	}{
		"trade_success":   {with("TRADE_SUCCESS", nil), paid},
		"no_refund":       {with("TRADE_SUCCESS", map[string]string{"refund_fee": "0.00", "out_biz_no": "B-1"}), paid},
		"trade_finished":  {with("TRADE_FINISHED", nil), want(supplier.Paid, "TRADE_FINISHED", "TRADE_FINISHED", 1999, paid.OccurredAt)},
		"finished_refund": {with("TRADE_FINISHED", refundFields), finished},
		"wait_buyer_pay":  {with("WAIT_BUYER_PAY", nil), want(supplier.Other, "WAIT_BUYER_PAY", "WAIT_BUYER_PAY", 1999, time.Time{})},
		"refund_part":     {with("TRADE_SUCCESS", refundFields), part},
		"refund_full":     {with("TRADE_CLOSED", map[string]string{"gmt_refund": "2026-03-01 15:59:58.123", "out_biz_no": "R-1"}), full},
		"trade_closed":    {with("TRADE_CLOSED", map[string]string{"gmt_close": "2026-03-01 15:59:58"}), closed},
		"another_product": {
			url.Values{"notify_id": {"N-1"}, "app_id": {testAppID}, "total_amount": {"any"}},
			supplier.Callback{EventKey: "N-1", Status: supplier.Unknown, Currency: "CNY", Identity: map[string]string{
				"app_id":    testAppID,
				"seller_id": "",
			}},
		},
		"dut_user_sign": {
			url.Values{"notify_id": {"N-2"}, "app_id": {testAppID}, "notify_type": {"dut_user_sign"}},
			supplier.Callback{
				EventKey: "N-2", Status: supplier.Unknown, RawStatus: "dut_user_sign", Currency: "CNY",
				Identity: map[string]string{"app_id": testAppID, "seller_id": ""},
			},
		},
		"refund_unnumbered": {
			with("TRADE_SUCCESS", map[string]string{"gmt_refund": "2026-03-01 15:59:58", "refund_fee": "5.00"}),
			unnumbered,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/" + name + ".http"
			suppliertest.Kept(t, path, post(sign(key, tc.fields, nil)))
			got, err := newTest(t, key).Parse(suppliertest.Load(t, path), &supplier.Trace{})
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, tc.want)
			}
		})
	}
}

// sign_type is not part of the signed text: a message must not be able to choose
// the weaker SHA-1.
func TestOnlyRSA2Counts(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	for _, kind := range []string{"RSA", "rsa2", "MD5", ""} {
		f := sign(key, trade(suppliertest.Change{}), nil)
		f.Set("sign_type", kind)
		var refused *supplier.Refused
		if _, err := newTest(t, key).Parse(post(f), nil); !errors.As(err, &refused) || refused.Result != supplier.BadSignature {
			t.Errorf("sign_type %q: %v", kind, err)
		}
	}
}

// A buyer chooses words that a shop puts into the body; Alipay signs them. Cut at
// other places, the same signed text pays another order. Neither reading counts.
func TestSignedTextThatCanBeReadAnotherWayMovesNothing(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	cheap := map[string]string{
		"body":         "x&out_trade_no=VICTIM&total_amount=100.00&trade_no=T-2&trade_status=TRADE_SUCCESS&zz=",
		"out_trade_no": "CHEAP", "total_amount": "0.01", "trade_no": "T-1", "trade_status": "TRADE_SUCCESS",
	}
	const hidden = "&out_trade_no=CHEAP&total_amount=0.01&trade_no=T-1&trade_status=TRADE_SUCCESS"
	inValue := map[string]string{
		"body": "x", "out_trade_no": "VICTIM", "total_amount": "100.00", "trade_no": "T-2",
		"trade_status": "TRADE_SUCCESS", "zz": hidden,
	}
	inName := map[string]string{
		"body": "x", "out_trade_no": "VICTIM", "total_amount": "100.00", "trade_no": "T-2",
		"trade_status": "TRADE_SUCCESS", "zz=" + strings.TrimSuffix(hidden, "=TRADE_SUCCESS"): "TRADE_SUCCESS",
	}
	genuine := sign(key, form(cheap), nil)
	for name, fields := range map[string]map[string]string{"genuine": cheap, "in a value": inValue, "in a name": inName} {
		if signedText(fields) != signedText(cheap) {
			t.Fatalf("%s: the control no longer shows the attack: the texts differ", name)
		}
		f := form(fields)
		f.Set("sign", genuine.Get("sign"))
		f.Set("sign_type", "RSA2")
		if got, err := newTest(t, key).Parse(post(f), nil); err == nil {
			t.Errorf("%s: believed: %+v", name, got)
		}
	}
	harmless := trade(suppliertest.Change{})
	harmless.Set("body", "Tom & Jerry, https://m.example/n?a=1&b=2&x_total_amount=3")
	if got, err := newTest(t, key).Parse(post(sign(key, harmless, nil)), nil); err != nil || got.Status != supplier.Paid {
		t.Errorf("an address in the body: %v", err)
	}
}

func form(fields map[string]string) url.Values {
	f := url.Values{}
	for name, value := range fields {
		f.Set(name, value)
	}
	return f
}

// What trims values before it verifies reads " ORDER" as the signed "ORDER".
func TestUnsignedSpaceIsNoticed(t *testing.T) {
	t.Parallel()
	f := sign(loadKey(t, "test-only-alipay.pem"), trade(suppliertest.Change{}), nil)
	f.Set("out_trade_no", f.Get("out_trade_no")+" ")
	if _, err := newTest(t, loadKey(t, "test-only-alipay.pem")).Parse(post(f), nil); err == nil {
		t.Error("a space that is not signed is believed")
	}
}

// Line breaks within base64 change nothing, so that the signature has room for padding.
func TestPaddingOfTheSignatureIsUnsigned(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	for pad, want := range map[int]bool{0: true, 1000: true, 5000: false, 60_000: false} {
		f := sign(key, trade(suppliertest.Change{}), func(given string) string { return given[:9] + strings.Repeat("\n", pad) + given[9:] })
		_, err := newTest(t, key).Parse(post(f), nil)
		var refused *supplier.Refused
		if (err == nil) != want || err != nil && !(errors.As(err, &refused) && refused.Result == supplier.Malformed) {
			t.Errorf("%d line breaks in the signature: %v", pad, err)
		}
	}
}

func TestQueryIsNotRead(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	req := post(sign(key, trade(suppliertest.Change{}), nil))
	req.RawQuery, req.Body = string(req.Body), nil
	if _, err := newTest(t, key).Parse(req, nil); err == nil {
		t.Error("parameters of the query are believed")
	}
}

func TestUnreadableIsShownToPeople(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	odd := trade(suppliertest.Change{})
	odd.Set("refund_fee", "1e2")
	for name, f := range map[string]url.Values{
		"odd amount": trade(suppliertest.Change{Amount: "1e2"}),
		"odd refund": odd,
		"nothing":    {"out_trade_no": {"ORDER-20260301-0001"}},
	} {
		_, err := newTest(t, key).Parse(post(sign(key, f, nil)), nil)
		var u *supplier.Unreadable
		if !errors.As(err, &u) || u.Kind != "malformed" || u.Callback.OrderRef != "ORDER-20260301-0001" ||
			u.Callback.Status != supplier.Other {
			t.Errorf("%s: %v %+v", name, err, u)
		}
	}
}

func TestConfigNamesTheWrongField(t *testing.T) {
	t.Parallel()
	key, own := loadKey(t, "test-only-alipay.pem"), loadKey(t, "test-only-stranger.pem")
	for field, change := range map[string]func(*config){
		"app_id":            func(c *config) { c.AppID = "" },
		"alipay_public_key": func(c *config) { c.AlipayPublicKey = publicText(t, own) },
		"app_private_key":   func(c *config) { c.AppPrivateKey = "canary" },
		"gateway_url":       func(c *config) { c.GatewayURL = "openapi.alipay.com" },
	} {
		c := config{AppID: testAppID, AlipayPublicKey: publicText(t, key), AppPrivateKey: privateText(t, own)}
		change(&c)
		raw, _ := json.Marshal(c)
		_, err := Kind.New("ali-main", raw, nil)
		if f := supplier.AsField(err); f == nil || f.Field != field || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want the field %s", err, field)
		}
	}
}

func TestAccountIsTheApplication(t *testing.T) {
	t.Parallel()
	if got := newTest(t, loadKey(t, "test-only-alipay.pem")).Account(); got != "alipay:"+testAppID {
		t.Error(got)
	}
}

// FuzzParse sends any body: only what Alipay signed may be believed.
func FuzzParse(f *testing.F) {
	f.Add(messageBuilder(f)(suppliertest.Change{}).Body)
	a := newTest(f, loadKey(f, "test-only-alipay.pem"))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := post(nil)
		req.Body = body
		if got, err := a.Parse(req, &supplier.Trace{}); err == nil && !reflect.DeepEqual(got, paid) {
			t.Errorf("believed: %+v", got)
		}
	})
}

// plainYuan is every way to write an amount that may count.
var plainYuan = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})(\.[0-9]{1,2})?$`)

// FuzzSigned signs any form: what counts as paid must name its amount plainly.
func FuzzSigned(f *testing.F) {
	f.Add(trade(suppliertest.Change{}).Encode())
	f.Add("trade_no=T&trade_status=TRADE_CLOSED&refund_fee=1.00")
	key := loadKey(f, "test-only-alipay.pem")
	a := newTest(f, key)
	f.Fuzz(func(t *testing.T, form string) {
		fields, err := url.ParseQuery(form)
		if err != nil {
			return
		}
		got, err := a.Parse(post(sign(key, fields, nil)), &supplier.Trace{})
		if err == nil && got.Status == supplier.Paid && !plainYuan.MatchString(fields.Get("total_amount")) {
			t.Errorf("paid %d, the form has %q", got.Amount, fields.Get("total_amount"))
		}
	})
}
