package wechatpay

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

const (
	defaultBase = "https://api.mch.weixin.qq.com" // 接口规则: 主域名
	// closeAfter: "The Close Order API cannot be called immediately after the order is
	// generated. The minimum call interval is 5 minutes" (关闭订单, v2 and the global v3; the
	// mainland's v3 does not mention it).
	closeAfter = 5 * time.Minute
	// maxDescription is the limit of Native下单 (string(127)), applied to bytes so that it holds
	// in any unit.
	maxDescription = 127
)

// references matches a valid out_trade_no (Native下单: 要求6-32个字符内，只能是数字、大小写字母_-|*).
var references = regexp.MustCompile(`^[0-9A-Za-z_\-|*]{6,32}$`)

// beijing is the time zone of WeChat Pay's own times.
var beijing = time.FixedZone("", 8*60*60)

// caller holds what calls are made with.
type caller struct {
	out          supplier.Client
	base, serial string
	key          crypto.Signer // RSA
	answersUnder string        // the public key's id; "" = a platform certificate signs
}

// Abilities are all of them with the keys for calls; payments are started for an application
// only, so that Payer needs app_id.
func (a *adapter) Abilities() supplier.Abilities {
	if a.caller == nil {
		return supplier.Abilities{}
	}
	can := supplier.Abilities{Querier: a, Closer: a, CloseAfter: closeAfter, Refunder: a, RefundRepeat: supplier.Forever}
	if a.appID != "" {
		can.Payer = a
	}
	return can
}

// order is the body of Native下单 and JSAPI下单. A repeat must have identical fields (time_expire:
// 不允许后续修改，尝试修改将导致错误), so it contains nothing that depends on the current time.
type order struct {
	AppID       string `json:"appid"`
	MchID       string `json:"mchid"`
	Description string `json:"description"`
	OutTradeNo  string `json:"out_trade_no"`
	TimeExpire  string `json:"time_expire,omitempty"`
	NotifyURL   string `json:"notify_url"`
	Amount      struct {
		Total    int64  `json:"total"`
		Currency string `json:"currency"`
	} `json:"amount"`
	Payer *payer `json:"payer,omitempty"`
}

type payer struct {
	OpenID string `json:"openid"`
}

// Start creates a QR code (Native下单) or, with MethodApp, what the client needs to request the
// payment from the buyer (JSAPI下单, also for 小程序).
func (a *adapter) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	o, err := a.order(p)
	if err != nil {
		return supplier.Started{}, err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return supplier.Started{}, fmt.Errorf("write the order: %w", err)
	}
	path := "/v3/pay/transactions/native"
	if o.Payer != nil {
		path = "/v3/pay/transactions/jsapi"
	}
	x, code, err := a.call(ctx, http.MethodPost, path, body, http.StatusOK)
	switch {
	case err == nil:
		return a.started(x, o)
	case refusals[code] && x.Class == supplier.ClassRefused:
		return supplier.Started{State: supplier.StartRefused, Word: code, Reason: text.Of(err), Exchange: x}, nil
	default:
		s := x.StartUnknown("", err)
		s.Word = code
		return s, nil
	}
}

// refusals are the codes that definitely mean that no payment was begun: the request itself is
// unacceptable and will be when repeated. Others may concern an order begun by an earlier call
// (ORDERPAID, OUT_TRADE_NO_USED, ORDER_CLOSED, INVALID_REQUEST "订单号重复") or be temporary
// (FREQUENCY_LIMITED, SYSTEM_ERROR). From memory of the error tables (错误码) of Native下单 and
// JSAPI下单.
var refusals = map[string]bool{
	"PARAM_ERROR": true, "SIGN_ERROR": true, "NO_AUTH": true, "NOAUTH": true, "MCH_NOT_EXISTS": true,
	"APPID_MCHID_NOT_MATCH": true, "OPENID_MISMATCH": true, "RULE_LIMIT": true, "RULELIMIT": true,
}

// order returns a *FieldError if WeChat Pay cannot take the payment.
func (a *adapter) order(p supplier.Payment) (order, error) {
	o := order{AppID: a.appID, MchID: a.mchID, OutTradeNo: p.Reference, NotifyURL: p.NotifyURL}
	switch {
	case !references.MatchString(p.Reference):
		return o, wrong("order_no", "WeChat Pay takes 6 to 32 letters, digits and _-|*")
	case p.Currency != "CNY":
		return o, wrong("currency", "WeChat Pay takes CNY only")
	case p.Amount <= 0:
		return o, wrong("amount", "must be above 0")
	}
	switch p.Method {
	case "", supplier.MethodQR:
	case supplier.MethodApp:
		if p.Payer == "" {
			return o, wrong("payer", "is missing; WeChat Pay needs the buyer's openid for this method")
		}
		o.Payer = &payer{p.Payer}
	default:
		return o, wrong("method", "WeChat Pay starts payments by qr and app")
	}
	o.Amount.Total, o.Amount.Currency = p.Amount, p.Currency
	if o.Description = textlimit.Cut(p.Subject, maxDescription); o.Description == "" {
		o.Description = p.OrderNo
	}
	if !p.ExpiresAt.IsZero() {
		o.TimeExpire = p.ExpiresAt.In(beijing).Format(time.RFC3339) // fractions are cut, so never later
	}
	return o, nil
}

// started parses the answer to an accepted order.
func (a *adapter) started(x supplier.Exchange, o order) (supplier.Started, error) {
	var answer struct {
		CodeURL  string `json:"code_url"`
		PrepayID string `json:"prepay_id"`
	}
	if err := supplier.DecodeJSON(x.Body, &answer); err != nil {
		return x.StartUnknown(supplier.ClassBadAnswer, err), nil
	}
	s := supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: answer.CodeURL}
	switch {
	case o.Payer == nil && answer.CodeURL == "":
		return x.StartUnknown(supplier.ClassBadAnswer, noValue.Say("code_url")), nil
	case o.Payer != nil && answer.PrepayID == "":
		return x.StartUnknown(supplier.ClassBadAnswer, noValue.Say("prepay_id")), nil
	case o.Payer != nil:
		value, err := a.bridge(answer.PrepayID)
		if err != nil {
			return x.StartUnknown(supplier.ClassBadAnswer, noValue.Say(err)), nil // the order exists
		}
		s.Kind, s.Value = supplier.ValueClientSecret, value
	}
	x.Class = supplier.ClassOK
	s.Exchange = x
	return s, nil
}

// bridge is what the buyer's client passes to WeixinJSBridge or wx.requestPayment
// (JSAPI调起支付: RSA-SHA256 over "appId\ntimeStamp\nnonceStr\npackage\n").
func (a *adapter) bridge(prepayID string) (string, error) {
	stamp, nonce, pack := strconv.FormatInt(time.Now().Unix(), 10), rand.Text(), "prepay_id="+prepayID
	signature, err := a.sign(a.appID, stamp, nonce, pack)
	if err != nil {
		return "", err
	}
	value, err := json.Marshal(map[string]string{
		"appId": a.appID, "timeStamp": stamp, "nonceStr": nonce, "package": pack, "signType": "RSA", "paySign": signature,
	})
	return string(value), err
}

// Query queries by our own number (商户订单号查询订单).
func (a *adapter) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if !references.MatchString(r.Reference) {
		return supplier.Answer{}, wrong("order_no", "WeChat Pay takes 6 to 32 letters, digits and _-|*")
	}
	path := "/v3/pay/transactions/out-trade-no/" + url.PathEscape(r.Reference) + "?mchid=" + url.QueryEscape(a.mchID)
	x, code, err := a.call(ctx, http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		if a.isNotFound(x, code) {
			return x.Judge(r, supplier.Meaning{Answer: supplier.AnswerNotFound}, a.own(r, code)), nil
		}
		return x.Unknown("", err), nil
	}
	var f fact
	if err := supplier.DecodeJSON(x.Body, &f); err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err), nil
	}
	if f.MchID != a.mchID {
		return x.Unknown(supplier.ClassBadAnswer, otherMerchant.Say(strconv.Quote(textlimit.Clip(f.MchID, 80)))), nil
	}
	m := words.Of(f.TradeState)
	if m.Answer == supplier.AnswerNotFound {
		m = supplier.Meaning{Status: supplier.Unknown} // an error code is not a state
	}
	says := supplier.Callback{RawStatus: f.TradeState, Reverses: m.Reverses, EventKey: f.eventKey(), Currency: f.Amount.Currency}
	f.describe(&says)
	if says.Amount, err = money.ParseMinor(string(f.Amount.Total)); err != nil && m.State() == supplier.AnswerPaid {
		return x.Unknown(supplier.ClassBadAnswer, noAmount.Say(err)), nil
	}
	if f.TransactionID == "" && m.State() == supplier.AnswerPaid {
		return x.Unknown(supplier.ClassBadAnswer, noPayment.Say()), nil
	}
	return x.Judge(r, m, says), nil
}

// isNotFound reports whether a signed refusal says that the order does not exist.
func (a *adapter) isNotFound(x supplier.Exchange, code string) bool {
	return x.Class == supplier.ClassRefused && words.Of(strconv.Itoa(x.Status)+" "+code).Answer == supplier.AnswerNotFound
}

// Close makes the order impossible to pay (关闭订单). After a refusal, including for a paid or
// already closed order, it must be queried.
func (a *adapter) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if !references.MatchString(r.Reference) {
		return supplier.Answer{}, wrong("order_no", "WeChat Pay takes 6 to 32 letters, digits and _-|*")
	}
	body, err := json.Marshal(map[string]string{"mchid": a.mchID})
	if err != nil {
		return supplier.Answer{}, fmt.Errorf("write the close: %w", err)
	}
	path := "/v3/pay/transactions/out-trade-no/" + url.PathEscape(r.Reference) + "/close"
	x, code, err := a.call(ctx, http.MethodPost, path, body, http.StatusNoContent)
	switch {
	case err != nil && a.isNotFound(x, code):
		answer := x.Judge(r, supplier.Meaning{Answer: supplier.AnswerNotFound}, a.own(r, code))
		answer.Exchange.Class = supplier.ClassRefused
		return answer, nil
	case err != nil:
		return x.Unknown("", err), nil
	case len(x.Body) > 0:
		return x.Unknown(supplier.ClassBadAnswer, errorCode.Say(x.Status, "-")), nil
	}
	return x.Judge(r, words.Of("CLOSED"), a.own(r, "CLOSED")), nil
}

// own returns the content of an answer that contains nothing itself: it concerns the requested
// order.
func (a *adapter) own(r supplier.Ref, word string) supplier.Callback {
	says := supplier.Callback{
		EventKey: r.Reference + ":" + word, OrderRef: r.Reference, RawStatus: word,
		Identity: map[string]string{"mch_id": a.mchID},
	}
	if a.appID != "" {
		says.Identity["app_id"] = a.appID
	}
	return says
}

// call makes one signed call. Without an error the answer is correctly signed and has the
// wanted status; otherwise the Exchange has a class: ClassRefused, with the code, for a
// correctly signed refusal.
func (a *adapter) call(ctx context.Context, method, path string, body []byte, want int) (supplier.Exchange, string, error) {
	header, err := a.header(method, path, body)
	if err != nil {
		return supplier.Exchange{Class: supplier.ClassConnect}, "", err
	}
	x, err := supplier.Call{Method: method, URL: a.base + path, Header: header, Body: body}.Send(ctx, a.out)
	if err != nil {
		return x, "", err
	}
	if err := a.verifyAnswer(x); err != nil {
		x.Class = supplier.ClassBadSignature
		if x.Status >= http.StatusInternalServerError {
			x.Class = supplier.ClassBadAnswer // a gateway's own page
		}
		return x, "", httpStatus.Say(x.Status, err)
	}
	if x.Status == want {
		return x, "", nil
	}
	var refusal struct {
		Code string `json:"code"`
	}
	err = supplier.DecodeJSON(x.Body, &refusal)
	switch {
	case err != nil || refusal.Code == "":
		x.Class = supplier.ClassBadAnswer
	case x.Status < 400 || x.Status >= 500 || x.Status == http.StatusTooManyRequests:
		x.Class = supplier.ClassUnknown
	default:
		x.Class = supplier.ClassRefused
	}
	code := textlimit.Clip(refusal.Code, 80)
	return x, code, errorCode.Say(x.Status, strconv.Quote(code))
}

// verifyAnswer verifies an answer like a notification (如何验证签名: the body of a 204 is signed as
// an empty line).
func (a *adapter) verifyAnswer(x supplier.Exchange) error {
	at, err := a.verify(&supplier.Request{Header: x.Header, Body: x.Body, ReceivedAt: x.At}, nil)
	if err != nil {
		return err
	}
	return supplier.CheckWindow(nil, at, x.At, window)
}

// header signs a request (如何构造请求签名: "METHOD\nURI\ntimestamp\nnonce\nbody\n"). With the
// public key's id in Wechatpay-Serial, that key signs the answer (微信支付公钥).
func (a *adapter) header(method, path string, body []byte) (http.Header, error) {
	u, err := url.Parse(a.base + path)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	stamp, nonce := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	signature, err := a.sign(method, u.RequestURI(), stamp, nonce, string(body))
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set("Authorization", fmt.Sprintf(`%s mchid="%s",nonce_str="%s",timestamp="%s",serial_no="%s",signature="%s"`,
		signatureType, a.mchID, nonce, stamp, a.serial, signature))
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "Backstop") // 接口规则: one is required
	if len(body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	if a.answersUnder != "" {
		h.Set("Wechatpay-Serial", a.answersUnder)
	}
	return h, nil
}

// sign signs lines with the merchant's key.
func (a *adapter) sign(lines ...string) (string, error) {
	digest := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	raw, err := a.key.Sign(nil, digest[:], crypto.SHA256) // PKCS #1 v1.5, which needs no randomness
	if err != nil {
		return "", fmt.Errorf("sign with merchant_private_key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
