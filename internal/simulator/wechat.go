package simulator

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wechat is WeChat Pay's API v3 (pay.weixin.qq.com/doc/v3): Native and JSAPI payments, queries
// and closes by the merchant's number.
type wechat struct {
	seed
	platform, merchant *rsa.PrivateKey
	apiKey             string // of 32 characters
	merchantSerial     string
}

const (
	wechatKeyID = "PUB_KEY_ID_0119000000012026010100000000"
	wechatMch   = "1900000001"
	wechatApp   = "wx8888888888888888"
	wechatType  = "WECHATPAY2-SHA256-RSA2048"
)

func newWechat(s seed, k keyPairs) *wechat {
	return &wechat{
		seed: s, platform: k.wechatPlatform, merchant: k.wechatMerchant, apiKey: s.hex(32, "api_v3_key"),
		merchantSerial: strings.ToUpper(s.hex(40, "merchant_serial")),
	}
}

func (w *wechat) config() map[string]any {
	return map[string]any{
		"mch_id": wechatMch, "app_id": wechatApp, "api_v3_key": w.apiKey,
		"public_key_id": wechatKeyID, "public_key": publicPEM(w.platform),
	}
}

func (w *wechat) calls(base string) map[string]any {
	return map[string]any{"merchant_serial": w.merchantSerial, "merchant_private_key": privatePEM(w.merchant), "base_url": base}
}

func (w *wechat) routes() map[string]operation {
	return map[string]operation{
		"POST /v3/pay/transactions/native":                  opPay,
		"POST /v3/pay/transactions/jsapi":                   opPay,
		"GET /v3/pay/transactions/out-trade-no/{no}":        opQuery,
		"POST /v3/pay/transactions/out-trade-no/{no}/close": opClose,
		"POST /v3/refund/domestic/refunds":                  opRefund,
		"GET /v3/refund/domestic/refunds/{refund}":          opRefundQuery,
	}
}

func (w *wechat) tradeNo(ref string, _ int) string { return "4200" + w.digits(24, "wechat", ref) }

// wechatError is the form of every refusal. The codes are those in WeChat Pay's documentation.
func wechatError(status int, code, message string) reply {
	return jsonReply(status, object{"code": code, "message": message})
}

func (w *wechat) failed() reply {
	return w.mustSign(wechatError(http.StatusInternalServerError, "SYSTEM_ERROR", "系统异常，请稍后重试"))
}

var (
	wechatAuth  = regexp.MustCompile(`^` + wechatType + ` (.+)$`)
	wechatPart  = regexp.MustCompile(`^([a-z_]+)="([^"]*)"$`)
	wechatRefOK = regexp.MustCompile(`^[0-9A-Za-z_\-|*]{6,32}$`)
)

// verify checks the Authorization header (如何构造请求签名): the signature covers method,
// path with query, time, nonce and body, a line each.
func (w *wechat) verify(r *http.Request, body []byte) error {
	header := wechatAuth.FindStringSubmatch(r.Header.Get("Authorization"))
	if header == nil {
		return fmt.Errorf("the header Authorization does not begin with %s", wechatType)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(header[1], ",") {
		m := wechatPart.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return fmt.Errorf("the header Authorization contains %q", part)
		}
		parts[m[1]] = m[2]
	}
	switch {
	case parts["mchid"] != wechatMch:
		return fmt.Errorf("mchid %q is not %s", parts["mchid"], wechatMch)
	case parts["serial_no"] != w.merchantSerial:
		return fmt.Errorf("serial_no %q is not the merchant's certificate", parts["serial_no"])
	case parts["nonce_str"] == "":
		return errors.New("nonce_str is missing")
	}
	if _, err := strconv.ParseInt(parts["timestamp"], 10, 64); err != nil || len(parts["timestamp"]) != 10 {
		return fmt.Errorf("timestamp %q is not in seconds", parts["timestamp"])
	}
	text := strings.Join([]string{r.Method, r.RequestURI, parts["timestamp"], parts["nonce_str"], string(body), ""}, "\n")
	if !rsaHolds(w.merchant, text, parts["signature"]) {
		return fmt.Errorf("the signature over\n%s does not hold", text)
	}
	return nil
}

// wechatStart is the body of a start.
type wechatStart struct {
	AppID       string `json:"appid"`
	MchID       string `json:"mchid"`
	Description string `json:"description"`
	OutTradeNo  string `json:"out_trade_no"`
	NotifyURL   string `json:"notify_url"`
	Amount      struct {
		Total    int64  `json:"total"`
		Currency string `json:"currency"`
	} `json:"amount"`
	Payer struct {
		OpenID string `json:"openid"`
	} `json:"payer"`
}

func (w *wechat) read(op operation, r *http.Request, body []byte) (call, *reply) {
	if err := w.verify(r, body); err != nil {
		wrong := wechatError(http.StatusUnauthorized, "SIGN_ERROR", "签名错误: "+err.Error())
		return call{}, &wrong
	}
	c := call{op: op, ref: r.PathValue("no"), content: string(body)}
	problem := ""
	switch op {
	case opPay:
		problem = readWechatStart(&c, r, body)
	case opRefund:
		problem = readWechatRefund(&c, body)
	case opRefundQuery:
		c.refund = r.PathValue("refund")
	case opQuery:
		if r.URL.Query().Get("mchid") != wechatMch {
			problem = "mchid"
		}
	case opClose:
		var asked struct {
			MchID string `json:"mchid"`
		}
		if json.Unmarshal(body, &asked) != nil || asked.MchID != wechatMch {
			problem = "mchid"
		}
	}
	if problem != "" {
		wrong := w.mustSign(wechatError(http.StatusBadRequest, "PARAM_ERROR", "参数错误: "+problem))
		return c, &wrong
	}
	return c, nil
}

// readWechatStart returns the invalid field.
func readWechatStart(c *call, r *http.Request, body []byte) string {
	var asked wechatStart
	c.variant = r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch err := json.Unmarshal(body, &asked); {
	case err != nil:
		return "body"
	case asked.AppID != wechatApp:
		return "appid"
	case asked.MchID != wechatMch:
		return "mchid"
	case asked.Description == "" || len(asked.Description) > 127:
		return "description"
	case !wechatRefOK.MatchString(asked.OutTradeNo):
		return "out_trade_no"
	case asked.NotifyURL == "" || len(asked.NotifyURL) > 255:
		return "notify_url"
	case asked.Amount.Total <= 0:
		return "amount.total"
	case asked.Amount.Currency != "" && asked.Amount.Currency != "CNY":
		return "amount.currency"
	case c.variant == "jsapi" && asked.Payer.OpenID == "":
		return "payer.openid"
	}
	c.ref, c.amount, c.currency, c.notifyURL = asked.OutTradeNo, asked.Amount.Total, "CNY", asked.NotifyURL
	return ""
}

// wechatWords are the values of trade_state.
var wechatWords = map[State]string{
	StateUnpaid: "NOTPAY", StatePaying: "USERPAYING", StatePaid: "SUCCESS", StateFailed: "PAYERROR",
	StateClosed: "CLOSED", StateRefunded: "REFUND",
}

func (w *wechat) answer(c call, v view) (reply, error) { return w.sign(w.unsigned(c, v), v.forged) }

func (w *wechat) unsigned(c call, v view) reply {
	switch {
	case v.outcome == unknownRef:
		return wechatError(http.StatusNotFound, "ORDER_NOT_EXIST", "订单不存在")
	case v.outcome == inconsistent:
		return wechatError(http.StatusBadRequest, "INVALID_REQUEST", "请求重入时，参数与首次请求时不一致")
	case v.outcome == alreadyPaid:
		return wechatError(http.StatusBadRequest, "ORDERPAID", "该订单已支付")
	case v.outcome == alreadyClosed:
		return wechatError(http.StatusBadRequest, "ORDER_CLOSED", "订单已关闭")
	case v.outcome == refused && c.op == opClose:
		return wechatError(http.StatusAccepted, "USERPAYING", "用户支付中，需要输入密码")
	case v.outcome == refused:
		return wechatError(http.StatusForbidden, "RULE_LIMIT", "业务规则限制")
	case c.op == opClose:
		return reply{status: http.StatusNoContent, header: http.Header{}}
	case c.op == opQuery:
		return jsonReply(http.StatusOK, w.transaction(v.Fact))
	case c.variant == "jsapi":
		return jsonReply(http.StatusOK, object{"prepay_id": "wx" + w.digits(32, "prepay", v.Ref)})
	default:
		return jsonReply(http.StatusOK, object{"code_url": "weixin://wxpay/bizpayurl?pr=" + w.hex(9, "native", v.Ref)})
	}
}

// transaction returns the object in answers to queries, and encrypted in callbacks.
func (w *wechat) transaction(f Fact) object {
	t := object{
		"mchid": wechatMch, "appid": wechatApp, "out_trade_no": f.Ref, "trade_state": wechatWords[f.State],
		"trade_state_desc": string(f.State),
		"amount":           object{"total": f.Amount, "currency": f.Currency, "payer_currency": f.Currency},
	}
	if f.State == StatePaid || f.State == StateRefunded {
		t["transaction_id"], t["trade_type"], t["bank_type"] = f.TradeNo, "NATIVE", "OTHERS"
		t["success_time"], t["payer"] = f.At.Format(time.RFC3339), object{"openid": "o" + w.hex(27, "openid", f.Ref)}
		t["amount"].(object)["payer_total"] = f.Amount
	}
	return t
}

// sign adds the signature headers to an answer; an empty body is signed as an empty line.
func (w *wechat) sign(a reply, forged bool) (reply, error) {
	header, err := w.signatures(time.Now(), a.body, forged)
	if err != nil {
		return a, err
	}
	for name, values := range header {
		a.header[name] = values
	}
	return a, nil
}

// mustSign is sign for refusals of unverified calls, where a missing signature makes no
// difference.
func (w *wechat) mustSign(a reply) reply {
	signed, _ := w.sign(a, false)
	return signed
}

// signatures returns the headers of answers and callbacks.
func (w *wechat) signatures(at time.Time, body []byte, forged bool) (http.Header, error) {
	stamp, nonce := strconv.FormatInt(at.Unix(), 10), randomHex(16)
	text := stamp + "\n" + nonce + "\n" + string(body) + "\n"
	if forged {
		text = "0" + text
	}
	signature, err := rsaSign(w.platform, text)
	return http.Header{
		"Wechatpay-Timestamp": {stamp}, "Wechatpay-Nonce": {nonce}, "Wechatpay-Serial": {wechatKeyID},
		"Wechatpay-Signature": {signature}, "Wechatpay-Signature-Type": {wechatType},
	}, err
}

// wechatEvents are the event types of callbacks.
var wechatEvents = map[State]string{StatePaid: "TRANSACTION.SUCCESS", StateFailed: "TRANSACTION.FAIL", StateClosed: "TRANSACTION.CLOSED"}

// Callback returns a notification with an encrypted resource.
func (w *wechat) Callback(f Fact) (Message, error) {
	if f.State == "" {
		f.State = StatePaid
	}
	return w.sealed("EV-"+f.TradeNo, wechatEvents[f.State], "transaction", f.At, w.transaction(f))
}

// sealed is a notification of an event with an encrypted resource.
func (w *wechat) sealed(id, event, kind string, at time.Time, resource object) (Message, error) {
	plain, err := json.Marshal(resource)
	if err != nil {
		return Message{}, fmt.Errorf("write the resource: %w", err)
	}
	block, err := aes.NewCipher([]byte(w.apiKey))
	if err != nil {
		return Message{}, fmt.Errorf("seal the resource: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return Message{}, fmt.Errorf("seal the resource: %w", err)
	}
	nonce := randomHex(6) // 12 characters: the nonce of GCM
	body, err := json.Marshal(object{
		"id": id, "create_time": at.Format(time.RFC3339), "resource_type": "encrypt-resource",
		"event_type": event, "summary": event,
		"resource": object{
			"original_type": kind, "algorithm": "AEAD_AES_256_GCM",
			"ciphertext":      base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte(nonce), plain, []byte(kind))),
			"associated_data": kind, "nonce": nonce,
		},
	})
	if err != nil {
		return Message{}, fmt.Errorf("write the notification: %w", err)
	}
	header, err := w.signatures(at, body, false)
	header.Set("Content-Type", "application/json")
	return Message{header, body}, err
}
