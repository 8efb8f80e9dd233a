package simulator

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/money"
)

// alipay is Alipay's gateway (opendocs.alipay.com): alipay.trade.precreate, query, close and
// those of refunds and transfers, signed with RSA2 in both directions. The signature covers the node of an answer byte for byte
// as sent.
type alipay struct {
	seed
	own, app *rsa.PrivateKey
}

const (
	alipayApp    = "2021000000000001"
	alipaySeller = "2088000000000001"
)

// beijing is the time zone of Alipay's times.
var beijing = time.FixedZone("UTC+8", 8*60*60)

func newAlipay(s seed, k keyPairs) *alipay { return &alipay{seed: s, own: k.alipay, app: k.alipayApp} }

func (a *alipay) config() map[string]any {
	return map[string]any{"app_id": alipayApp, "seller_id": alipaySeller, "alipay_public_key": publicPEM(a.own)}
}

func (a *alipay) calls(base string) map[string]any {
	return map[string]any{"app_private_key": privatePEM(a.app), "gateway_url": base + "/gateway.do"}
}

// routes: the method is a parameter; opQuery stands for all methods until it has been read.
func (a *alipay) routes() map[string]operation {
	return map[string]operation{"POST /gateway.do": opQuery}
}

func (a *alipay) tradeNo(ref string, _ int) string { return "2026" + a.digits(24, "alipay", ref) }

func (a *alipay) failed() reply {
	return reply{
		http.StatusInternalServerError,
		http.Header{"Content-Type": {"text/html"}},
		[]byte("<html><body>500 Internal Server Error</body></html>"),
	}
}

var alipayMethods = map[string]operation{
	"alipay.trade.precreate": opPay, "alipay.trade.query": opQuery, "alipay.trade.close": opClose,
	"alipay.fund.trans.uni.transfer": opPayout, "alipay.fund.trans.common.query": opPayoutQuery,
	"alipay.trade.refund": opRefund, "alipay.trade.fastpay.refund.query": opRefundQuery,
}

func (a *alipay) read(_ operation, r *http.Request, body []byte) (call, *reply) {
	c := call{op: opQuery}
	fields, err := alipayFields(r, body)
	if err != nil {
		return c, a.wrong("", "40002", "isv.invalid-parameter", err.Error())
	}
	method := fields["method"]
	op, known := alipayMethods[method]
	c.op = op
	switch {
	case fields["app_id"] != alipayApp:
		return c, a.wrong("", "40002", "isv.invalid-app-id", "无效的AppID参数")
	case !known:
		return c, a.wrong("", "40001", "isv.invalid-method", "不存在的方法名")
	case fields["sign_type"] != "RSA2":
		return c, a.wrong(method, "40002", "isv.invalid-signature-type", "无效签名类型")
	case !rsaHolds(a.app, sortedPairs(withoutEmpty(fields), "sign"), fields["sign"]):
		return c, a.wrong(method, "40002", "isv.invalid-signature", "验签出错，请检查私钥和签名内容")
	case fields["version"] != "1.0" || fields["charset"] == "":
		return c, a.wrong(method, "40001", "isv.missing-version", "缺少version或charset参数")
	}
	if _, err := time.ParseInLocation(time.DateTime, fields["timestamp"], beijing); err != nil {
		return c, a.wrong(method, "40002", "isv.invalid-timestamp", "非法的时间戳参数")
	}
	c.variant, c.currency, c.notifyURL = method, "CNY", fields["notify_url"]
	c.content = fields["biz_content"] + "\n" + c.notifyURL
	if op == opPayout || op == opPayoutQuery {
		if problem := a.readPayout(&c, fields["biz_content"]); problem != "" {
			return c, a.wrong(method, "40004", "INVALID_PARAMETER", "参数有误: "+problem)
		}
		c.ref = c.payout
		return c, nil
	}
	var asked struct {
		OutTradeNo  string `json:"out_trade_no"`
		TotalAmount string `json:"total_amount"`
		Subject     string `json:"subject"`
	}
	problem := ""
	switch err := json.Unmarshal([]byte(fields["biz_content"]), &asked); {
	case err != nil:
		problem = "biz_content"
	case asked.OutTradeNo == "" || len(asked.OutTradeNo) > 64 || strings.Trim(asked.OutTradeNo, letters) != "":
		problem = "out_trade_no"
	case op == opPay && asked.Subject == "":
		problem = "subject"
	}
	if problem == "" && op == opPay {
		if c.amount, err = money.ParseMajor(asked.TotalAmount, "CNY"); err != nil || c.amount == 0 {
			problem = "total_amount"
		}
	}
	if problem == "" && (op == opRefund || op == opRefundQuery) {
		problem = a.readRefund(&c, fields["biz_content"])
	}
	if problem != "" {
		return c, a.wrong(method, "40004", "ACQ.INVALID_PARAMETER", "参数无效: "+problem)
	}
	c.ref = asked.OutTradeNo
	return c, nil
}

// letters are the characters allowed in an out_trade_no.
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// alipayFields returns the parameters, which Alipay accepts in the query, in the body or in
// both.
func alipayFields(r *http.Request, body []byte) (map[string]string, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("read the form: %w", err)
	}
	for name, all := range r.URL.Query() {
		values[name] = append(values[name], all...)
	}
	return flatten(values)
}

// withoutEmpty: empty parameters of a request are not signed (签名专区).
func withoutEmpty(fields map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range fields {
		if value != "" {
			kept[name] = value
		}
	}
	return kept
}

// wrong is a refusal: HTTP 200, like all of Alipay's answers. A refusal that belongs to no
// application is not signed.
func (a *alipay) wrong(method, code, sub, message string) *reply {
	node := object{"code": code, "msg": "Invalid Arguments", "sub_code": sub, "sub_msg": message}
	if method == "" {
		answer := jsonReply(http.StatusOK, object{"error_response": node})
		return &answer
	}
	answer, err := a.signed(method, node, false)
	if err != nil {
		answer = a.failed()
	}
	return &answer
}

func (a *alipay) signed(method string, node object, forged bool) (reply, error) {
	raw, err := json.Marshal(node)
	if err != nil {
		return reply{}, fmt.Errorf("write the answer: %w", err)
	}
	// Alipay escapes slashes, which exposes clients that verify re-encoded instead of raw text.
	text := strings.ReplaceAll(string(raw), "/", `\/`)
	over := text
	if forged {
		over += " "
	}
	signature, err := rsaSign(a.own, over)
	body := fmt.Sprintf(`{"%s_response":%s,"sign":"%s"}`, strings.ReplaceAll(method, ".", "_"), text, signature)
	return reply{http.StatusOK, http.Header{"Content-Type": {"text/html;charset=utf-8"}}, []byte(body)}, err
}

var alipayWords = map[State]string{
	StateUnpaid: "WAIT_BUYER_PAY", StatePaying: "WAIT_BUYER_PAY", StateFailed: "WAIT_BUYER_PAY", StatePaid: "TRADE_SUCCESS",
	StateClosed: "TRADE_CLOSED", StateRefunded: "TRADE_CLOSED",
}

func (a *alipay) answer(c call, v view) (reply, error) {
	node := object{"code": "10000", "msg": "Success", "out_trade_no": v.Ref}
	fail := func(sub, message string) {
		node["code"], node["msg"], node["sub_code"], node["sub_msg"] = "40004", "Business Failed", sub, message
	}
	switch {
	case v.outcome == unknownRef:
		fail("ACQ.TRADE_NOT_EXIST", "交易不存在")
	case v.outcome == inconsistent:
		fail("ACQ.CONTEXT_INCONSISTENT", "交易信息被篡改")
	case v.outcome == refused && c.op == opPay:
		fail("ACQ.EXIST_FORBIDDEN_WORD", "订单信息中包含违禁词")
	case v.outcome == alreadyPaid && c.op == opPay:
		fail("ACQ.TRADE_HAS_SUCCESS", "交易已被支付")
	case v.outcome == alreadyClosed && c.op == opPay:
		fail("ACQ.TRADE_HAS_CLOSE", "交易已经关闭")
	case v.outcome == alreadyPaid:
		fail("ACQ.REASON_TRADE_STATUS_INVALID", "交易状态异常")
	case v.outcome != done:
		fail("ACQ.TRADE_STATUS_ERROR", "交易状态不合法")
	case c.op == opPay:
		node["qr_code"] = "https://qr.alipay.com/bax" + a.hex(21, "qr", v.Ref)
	case c.op == opClose:
		node["trade_no"] = v.TradeNo
	default:
		node["trade_no"], node["trade_status"], node["total_amount"] = v.TradeNo, alipayWords[v.State], money.Format(v.Amount, "CNY")
		node["buyer_logon_id"], node["buyer_user_id"] = "159****5620", "2088"+a.digits(12, "buyer", v.Ref)
		if v.State == StatePaid || v.State == StateRefunded {
			node["send_pay_date"], node["receipt_amount"] = v.At.In(beijing).Format(time.DateTime), money.Format(v.Amount, "CNY")
		}
	}
	return a.signed(c.variant, node, v.forged)
}

// Callback is an asynchronous notification.
func (a *alipay) Callback(f Fact) (Message, error) {
	if f.State == "" {
		f.State = StatePaid
	}
	at := f.At.In(beijing).Format(time.DateTime)
	fields := map[string]string{
		"notify_id": "n" + f.TradeNo + string(f.State), "notify_time": at, "notify_type": "trade_status_sync",
		"app_id": alipayApp, "seller_id": alipaySeller, "charset": "utf-8", "version": "1.0",
		"out_trade_no": f.Ref, "trade_no": f.TradeNo, "trade_status": alipayWords[f.State], "total_amount": money.Format(f.Amount, "CNY"),
	}
	switch f.State {
	case StatePaid:
		fields["gmt_payment"] = at
	case StateClosed:
		fields["gmt_close"] = at
	}
	signature, err := rsaSign(a.own, sortedPairs(fields))
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	return formMessage(fields), err
}
