package alipay

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/supplier"
)

// defaultGateway is the production gateway (docs.open.alipay.com/api_1/alipay.trade.query,
// 请求地址).
const defaultGateway = "https://openapi.alipay.com/gateway.do"

// calls are the abilities of an application whose private key is configured.
type calls struct {
	adapter
	own     crypto.Signer // RSA
	gateway *url.URL
	out     supplier.Client
}

// Abilities are all of them, or none without the application's private key. An
// out_request_no and an out_biz_no are known for life.
func (c *calls) Abilities() supplier.Abilities {
	return supplier.Abilities{Payer: c, Querier: c, Closer: c, Refunder: c, RefundRepeat: supplier.Forever, Payouter: c, PayoutRepeat: true}
}

// node is the signed part of an answer, as far as it is used. Every value is text
// (docs.open.alipay.com/api_1/alipay.trade.query, …precreate and …close, 响应参数).
type node struct {
	Code          string `json:"code"`
	SubCode       string `json:"sub_code"`
	OutTradeNo    string `json:"out_trade_no"`
	TradeNo       string `json:"trade_no"`
	TradeStatus   string `json:"trade_status"`
	TotalAmount   string `json:"total_amount"`
	TransCurrency string `json:"trans_currency"`
	SendPayDate   string `json:"send_pay_date"`
	QRCode        string `json:"qr_code"`
	FundChange    string `json:"fund_change"` // alipay.trade.refund
	RefundFee     string `json:"refund_fee"`  // sum of the trade's refunds
	OutRequestNo  string `json:"out_request_no"`
	RefundStatus  string `json:"refund_status"` // alipay.trade.fastpay.refund.query
	RefundAmount  string `json:"refund_amount"`
	OutBizNo      string `json:"out_biz_no"` // alipay.fund.trans.uni.transfer and …common.query
	OrderID       string `json:"order_id"`
	Status        string `json:"status"`
	Amount        string `json:"amount"`
	TransAmount   string `json:"trans_amount"`
}

// Codes of the gateway (open.alitrip.com/docs/doc.htm?articleId=105806, 公共错误码): the call
// succeeded, or was refused for the reason in sub_code. Any other code, such as 20000 (service
// unavailable), says nothing about the payment.
const (
	codeSuccess = "10000"
	codeRefused = "40004"
)

// word returns the result of the answer for operators.
func (n node) word() string { return strings.TrimSpace(n.Code + " " + n.SubCode) }

// call makes one call and returns the verified node of its answer. With an error, the class says
// what is wrong with the answer; if there is no answer, the Exchange has the class.
func (c *calls) call(ctx context.Context, method, notifyURL string, content any) (node, supplier.Exchange, supplier.Class, error) {
	biz, err := json.Marshal(content)
	if err != nil {
		return node{}, supplier.Exchange{}, supplier.ClassConnect, badCall.Say(err)
	}
	fields := map[string]string{
		"app_id": c.appID, "method": method, "format": "JSON", "charset": "utf-8", "sign_type": "RSA2", "version": "1.0",
		"timestamp": time.Now().In(beijing).Format(time.DateTime), "biz_content": string(biz),
	}
	if notifyURL != "" {
		fields["notify_url"] = notifyURL
	}
	text := requestText(fields)
	signature, err := signText(c.own, text)
	if err != nil {
		return node{}, supplier.Exchange{}, supplier.ClassConnect, badCall.Say(err)
	}
	form := url.Values{"sign": {signature}}
	for name, value := range fields {
		form.Set(name, value)
	}
	x, err := supplier.Call{
		Method: http.MethodPost, URL: c.gateway.String(), Body: []byte(form.Encode()), Shown: c.gateway.RequestURI() + "\n\n" + text,
		// Without the charset the gateway may read the body as GBK (smartwalle/alipay v3.2.30
		// sends the same header).
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded;charset=utf-8"}},
	}.Send(ctx, c.out)
	if err != nil {
		return node{}, x, "", err
	}
	n, class, err := c.open(strings.ReplaceAll(method, ".", "_")+"_response", x)
	return n, x, class, err
}

// open verifies the node with this name, byte for byte as in the answer, and only then parses
// it (alipay-sdk-java, JsonConverter.getSignSourceData: the text between the node's braces,
// both included). Everything outside it is unsigned and ignored.
func (c *calls) open(name string, x supplier.Exchange) (n node, class supplier.Class, err error) {
	if x.Status != http.StatusOK {
		return node{}, supplier.ClassBadAnswer, httpStatus.Say(x.Status)
	}
	// With two nodes of one name, or text after the object, one reader could verify one text
	// and another read another.
	var parts map[string]json.RawMessage
	if err := supplier.DecodeJSON(x.Body, &parts); err != nil {
		return node{}, supplier.ClassBadAnswer, err
	}
	raw := parts[name]
	var sign string
	switch {
	case len(raw) == 0:
		return node{}, supplier.ClassBadAnswer, noNode.Say(name)
	// The gateway's own refusals often have no sign (fzlee/alipay issue 20).
	case json.Unmarshal(parts["sign"], &sign) != nil || sign == "":
		return node{}, supplier.ClassBadSignature, noSign.Say()
	case !holds(c.key, raw, sign):
		return node{}, supplier.ClassBadSignature, signatureWrong.Say()
	}
	if err := supplier.DecodeJSON(raw, &n); err != nil {
		return node{}, supplier.ClassBadAnswer, err
	}
	return n, "", nil
}

// requestText returns the signed text of a request: all parameters except sign, by name,
// unescaped. Unlike in a notification, sign_type is included (opendocs.alipay.com, 自行实现签名; the
// test compares it with smartwalle/alipay).
func requestText(fields map[string]string) string {
	return supplier.JoinPairs(fields, slices.Sorted(maps.Keys(fields)))
}

func signText(key crypto.Signer, text string) (string, error) {
	digest := sha256.Sum256([]byte(text))
	raw, err := key.Sign(nil, digest[:], crypto.SHA256) // PKCS #1 v1.5, which needs no randomness
	return base64.StdEncoding.EncodeToString(raw), err
}

// holds checks RSA-SHA256. Go's decoder skips line breaks even in strict mode, but one
// signature must have only one encoding.
func holds(key *rsa.PublicKey, signed []byte, sign string) bool {
	given, err := base64.StdEncoding.Strict().DecodeString(sign)
	if err != nil || strings.ContainsAny(sign, "\r\n") {
		return false
	}
	digest := sha256.Sum256(signed)
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], given) == nil
}
