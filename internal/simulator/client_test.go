package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/money"
)

// said is what a client reads of an answer.
type said struct {
	status  int
	genuine bool  // the signature holds; of Stripe always
	state   State // "" = none of the words
	word    string
	ref     string
	tradeNo string
	amount  int64
	value   string // what the buyer needs
	err     error  // no answer
}

// ask is one call of a client.
type ask struct {
	op        operation
	ref       string
	amount    int64 // of a start; 0 = 1999
	notifyURL string
	id        string              // Stripe
	keyless   bool                // Stripe: a start without Idempotency-Key
	alter     func(*http.Request) // after signing
}

// client speaks one kind's protocol, written from its documents and not with the
// simulator's or the adapters' code.
type client struct {
	request func(k *kit, q ask) *http.Request
	read    func(k *kit, q ask, status int, header http.Header, body []byte) said
}

var clients = map[string]client{
	"wechatpay":    {wechatRequest, wechatRead},
	"alipay":       {alipayRequest, alipayRead},
	"stripe":       {stripeRequest, stripeRead},
	"sortedparams": {sortedRequest, sortedRead},
}

// kit is a simulator behind a server, and one account of it.
type kit struct {
	t *testing.T
	*Simulator
	base string
	a    *Account
	http *http.Client
}

func newKit(t *testing.T, o Options) *kit {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return &kit{t: t, Simulator: s, base: server.URL, http: server.Client()}
}

// each runs a test for every kind.
func each(t *testing.T, test func(k *kit)) {
	for kind := range clients {
		t.Run(kind, func(t *testing.T) {
			k := newKit(t, Options{Seed: 7})
			k.a = k.of(kind)
			test(k)
		})
	}
}

func (k *kit) of(kind string) *Account {
	for _, a := range k.Accounts() {
		if a.Kind == kind {
			return a
		}
	}
	k.t.Fatalf("no account of kind %s", kind)
	return nil
}

func (k *kit) do(q ask) said {
	k.t.Helper()
	if q.amount == 0 {
		q.amount = 1999
	}
	r := clients[k.a.Kind].request(k, q)
	if q.alter != nil {
		q.alter(r)
	}
	answer, err := k.http.Do(r)
	if err != nil {
		return said{err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return said{err: err}
	}
	got := clients[k.a.Kind].read(k, q, answer.StatusCode, answer.Header, body)
	got.status = answer.StatusCode
	return got
}

func (k *kit) pay(ref string) said { k.t.Helper(); return k.do(ask{op: opPay, ref: ref}) }
func (k *kit) query(ref string) said {
	k.t.Helper()
	return k.do(ask{op: opQuery, ref: ref, id: k.Order(k.a.Code, ref).TradeNo})
}

func (k *kit) close(ref string) said {
	k.t.Helper()
	return k.do(ask{op: opClose, ref: ref, id: k.Order(k.a.Code, ref).TradeNo})
}

func (k *kit) set(ref string, script Script) Report {
	k.t.Helper()
	report, err := k.Set(k.a.Code, ref, script)
	if err != nil {
		k.t.Fatal(err)
	}
	return report
}

func (k *kit) new(method, path string, body []byte) *http.Request {
	k.t.Helper()
	r, err := http.NewRequestWithContext(k.t.Context(), method, k.base+path, bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kit) sign(key, text string) string {
	k.t.Helper()
	pairs, err := keys()
	if err != nil {
		k.t.Fatal(err)
	}
	own := pairs.wechatMerchant
	if key == "alipay" {
		own = pairs.alipayApp
	}
	signature, err := rsaSign(own, text)
	if err != nil {
		k.t.Fatal(err)
	}
	return signature
}

func reverse[K, V comparable](m map[K]V) map[V]K {
	back := map[V]K{}
	for key, value := range m {
		back[value] = key
	}
	return back
}

func wechatRequest(k *kit, q ask) *http.Request {
	method, path, body := http.MethodGet, "/v3/pay/transactions/out-trade-no/"+q.ref, ""
	switch q.op {
	case opPay:
		method, path = http.MethodPost, "/v3/pay/transactions/native"
		body = fmt.Sprintf(
			`{"appid":"wx8888888888888888","mchid":"1900000001","description":"tea","out_trade_no":%q,"notify_url":%q,"amount":{"total":%d,"currency":"CNY"}}`,
			q.ref, cmpOr(q.notifyURL, "http://127.0.0.1:1/none"), q.amount)
	case opQuery:
		path += "?mchid=1900000001"
	case opClose:
		method, path, body = http.MethodPost, path+"/close", `{"mchid":"1900000001"}`
	}
	r := k.new(method, path, []byte(body))
	now := strconv.FormatInt(time.Now().Unix(), 10)
	signature := k.sign("wechat", method+"\n"+path+"\n"+now+"\nN0NCE\n"+body+"\n")
	serial := k.a.calls("")["merchant_serial"]
	r.Header.Set("Authorization",
		fmt.Sprintf(`WECHATPAY2-SHA256-RSA2048 mchid="1900000001",nonce_str="N0NCE",signature=%q,timestamp=%q,serial_no=%q`, signature, now,
			serial))
	return r
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func wechatRead(k *kit, _ ask, _ int, header http.Header, body []byte) said {
	text := header.Get("Wechatpay-Timestamp") + "\n" + header.Get("Wechatpay-Nonce") + "\n" + string(body) + "\n"
	pairs, _ := keys()
	var a struct {
		Code          string `json:"code"`
		TradeState    string `json:"trade_state"`
		OutTradeNo    string `json:"out_trade_no"`
		TransactionID string `json:"transaction_id"`
		CodeURL       string `json:"code_url"`
		Amount        struct {
			Total int64 `json:"total"`
		} `json:"amount"`
	}
	_ = json.Unmarshal(body, &a)
	return said{
		genuine: rsaHolds(pairs.wechatPlatform, text, header.Get("Wechatpay-Signature")) && header.Get("Wechatpay-Serial") == wechatKeyID,
		state:   reverse(wechatWords)[a.TradeState], word: a.Code, ref: a.OutTradeNo, tradeNo: a.TransactionID, amount: a.Amount.Total,
		value: a.CodeURL,
	}
}

func alipayRequest(k *kit, q ask) *http.Request {
	method := map[operation]string{opPay: "alipay.trade.precreate", opQuery: "alipay.trade.query", opClose: "alipay.trade.close"}[q.op]
	content := fmt.Sprintf(`{"out_trade_no":%q}`, q.ref)
	if q.op == opPay {
		content = fmt.Sprintf(`{"out_trade_no":%q,"total_amount":"%d.%02d","subject":"tea"}`, q.ref, q.amount/100, q.amount%100)
	}
	fields := map[string]string{
		"app_id": "2021000000000001", "method": method, "format": "JSON", "charset": "utf-8", "sign_type": "RSA2",
		"timestamp": time.Now().In(time.FixedZone("", 8*3600)).Format("2006-01-02 15:04:05"), "version": "1.0", "biz_content": content,
	}
	if q.notifyURL != "" {
		fields["notify_url"] = q.notifyURL
	}
	fields["sign"] = k.sign("alipay", sortedPairs(fields))
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	r := k.new(http.MethodPost, "/gateway.do", []byte(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

var alipayNode = regexp.MustCompile(`^\{"alipay_trade_\w+_response":(.*),"sign":"([^"]*)"\}$`)

func alipayRead(_ *kit, _ ask, _ int, _ http.Header, body []byte) said {
	m := alipayNode.FindSubmatch(body)
	if m == nil {
		return said{}
	}
	pairs, _ := keys()
	var a struct {
		SubCode     string `json:"sub_code"`
		OutTradeNo  string `json:"out_trade_no"`
		TradeNo     string `json:"trade_no"`
		TradeStatus string `json:"trade_status"`
		TotalAmount string `json:"total_amount"`
		SendPayDate string `json:"send_pay_date"`
		QRCode      string `json:"qr_code"`
	}
	_ = json.Unmarshal(m[1], &a)
	got := said{
		genuine: rsaHolds(pairs.alipay, string(m[1]), string(m[2])), word: a.SubCode, ref: a.OutTradeNo, tradeNo: a.TradeNo,
		value: a.QRCode,
	}
	got.amount, _ = money.ParseMajor(a.TotalAmount, "CNY")
	switch {
	case a.TradeStatus == "WAIT_BUYER_PAY":
		got.state = StatePaying
	case a.TradeStatus == "TRADE_SUCCESS":
		got.state = StatePaid
	case a.TradeStatus == "TRADE_CLOSED" && a.SendPayDate != "":
		got.state = StateRefunded
	case a.TradeStatus == "TRADE_CLOSED":
		got.state = StateClosed
	}
	return got
}

func stripeRequest(k *kit, q ask) *http.Request {
	form, method, path := url.Values{}, http.MethodGet, "/v1/payment_intents/"+q.id
	switch {
	case q.op == opPay:
		method, path = http.MethodPost, "/v1/payment_intents"
		form = url.Values{"amount": {strconv.FormatInt(q.amount, 10)}, "currency": {"usd"}, "metadata[order_no]": {q.ref}}
	case q.op == opClose:
		method, path = http.MethodPost, path+"/cancel"
	case q.id != "":
		path += "?expand[]=latest_charge"
	case q.id == "":
		path = "/v1/payment_intents/search?query=" + url.QueryEscape("metadata['order_no']:'"+q.ref+"'")
	}
	r := k.new(method, path, []byte(form.Encode()))
	r.Header.Set("Authorization", "Bearer "+k.a.calls("")["api_key"].(string))
	if q.op == opPay && !q.keyless {
		r.Header.Set("Idempotency-Key", q.ref)
	}
	return r
}

func stripeRead(_ *kit, q ask, _ int, _ http.Header, body []byte) said {
	type intent struct {
		ID           string            `json:"id"`
		Status       string            `json:"status"`
		LatestCharge json.RawMessage   `json:"latest_charge"`
		Amount       int64             `json:"amount"`
		ClientSecret string            `json:"client_secret"`
		Metadata     map[string]string `json:"metadata"`
	}
	var a struct {
		intent
		Data  []intent `json:"data"`
		Error struct {
			Type, Code string
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &a)
	if len(a.Data) > 0 {
		a.intent = a.Data[0]
	}
	got := said{genuine: true, word: cmpOr(a.Error.Code, a.Error.Type), ref: a.Metadata["order_no"], tradeNo: a.ID, amount: a.Amount}
	if q.op == opPay {
		got.value = a.ClientSecret
	}
	got.state = map[string]State{
		"requires_payment_method": StateUnpaid, "processing": StatePaying, "succeeded": StatePaid, "canceled": StateClosed,
	}[a.Status]
	if bytes.Contains(a.LatestCharge, []byte(`"refunded":true`)) {
		got.state = StateRefunded
	}
	return got
}

func sortedRequest(k *kit, q ask) *http.Request {
	fields := map[string]string{
		"mch": "90001", "order_no": q.ref, "time": strconv.FormatInt(time.Now().Unix(), 10), "nonce": "0123456789abcdef",
	}
	if q.op == opPay {
		fields["amount"], fields["currency"], fields["subject"] = strconv.FormatInt(q.amount, 10), "CNY", "tea"
		fields["notify_url"], fields["expires_at"] = q.notifyURL, "1900000000"
	}
	fields["sign"] = hmacHex(k.a.config()["key"].(string), sortedPairs(fields))
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	return k.new(http.MethodPost, "/till/"+string(q.op), []byte(form.Encode()))
}

func sortedRead(k *kit, _ ask, _ int, _ http.Header, body []byte) said {
	fields := map[string]string{}
	_ = json.Unmarshal(body, &fields)
	got := said{
		genuine: fields["sign"] == hmacHex(k.a.config()["key"].(string), sortedPairs(fields, "sign")) && fields["mch"] == "90001",
		state:   reverse(sortedWords)[fields["status"]], word: fields["status"], ref: fields["order_no"], tradeNo: fields["trade_no"],
		value: fields["pay_url"],
	}
	got.amount, _ = money.ParseMinor(fields["amount"])
	return got
}

// flip changes one byte of the body, of Stripe the key.
func (k *kit) flip(r *http.Request) {
	if k.a.Kind == "stripe" {
		r.Header.Set("Authorization", r.Header.Get("Authorization")+"0")
		return
	}
	body, _ := io.ReadAll(r.Body)
	body = []byte(strings.Replace(string(body), "tea", "tee", 1))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}
