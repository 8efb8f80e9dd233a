package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
)

// How each kind reads and answers calls about refunds, and calls back about them.

// WeChat Pay: 申请退款, 查询单笔退款, 退款结果通知.

func (w *wechat) refundNo(no string) string { return "503" + w.digits(26, "refund", no) }

var wechatRefundWords = map[State]string{
	StateProcessing: "PROCESSING", StateSuccess: "SUCCESS", StateFailed: "CLOSED", StateAbnormal: "ABNORMAL",
}

// readWechatRefund reads the call into c and returns the name of an invalid field; "" = none.
func readWechatRefund(c *call, body []byte) string {
	var asked struct {
		OutTradeNo  string `json:"out_trade_no"`
		OutRefundNo string `json:"out_refund_no"`
		NotifyURL   string `json:"notify_url"`
		Reason      string `json:"reason"`
		Amount      struct {
			Refund, Total int64
			Currency      string
		} `json:"amount"`
	}
	switch err := json.Unmarshal(body, &asked); {
	case err != nil:
		return "body"
	case !wechatRefOK.MatchString(asked.OutTradeNo):
		return "out_trade_no"
	case asked.OutRefundNo == "" || len(asked.OutRefundNo) > 64:
		return "out_refund_no"
	case len(asked.Reason) > 80:
		return "reason"
	case asked.Amount.Refund <= 0 || asked.Amount.Total < asked.Amount.Refund || asked.Amount.Currency != "CNY":
		return "amount"
	}
	c.ref, c.refund, c.amount, c.total, c.notifyURL = asked.OutTradeNo, asked.OutRefundNo, asked.Amount.Refund, asked.Amount.Total,
		asked.NotifyURL
	return ""
}

func (w *wechat) refundObject(f RefundFact) object {
	return object{
		"refund_id": f.SupplierNo, "out_refund_no": f.No, "transaction_id": f.Payment.TradeNo, "out_trade_no": f.Payment.Ref,
		"channel":               "ORIGINAL",
		"user_received_account": "支付用户零钱", "create_time": f.At.Format(time.RFC3339), "status": wechatRefundWords[f.State],
		"amount": object{
			"total": f.Payment.Amount, "refund": f.Amount, "payer_total": f.Payment.Amount, "payer_refund": f.Amount,
			"currency": "CNY",
		},
	}
}

func (w *wechat) answerRefund(c call, v refundView) (reply, error) {
	answer := jsonReply(http.StatusOK, w.refundObject(v.RefundFact))
	switch {
	case v.outcome == unknownRef && c.op == opRefundQuery:
		answer = wechatError(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "退款单不存在")
	case v.outcome == unknownRef:
		answer = wechatError(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "订单不存在")
	case v.outcome == inconsistent:
		answer = wechatError(http.StatusBadRequest, "INVALID_REQUEST", "请求重入时，参数与首次请求时不一致")
	case v.outcome == refused:
		answer = wechatError(http.StatusBadRequest, "PARAM_ERROR", "退款金额错误")
	case v.State == StateShort:
		answer = wechatError(http.StatusForbidden, "NOT_ENOUGH", "基本账户余额不足")
	case v.State == StateNotFound:
		answer = wechatError(http.StatusInternalServerError, "SYSTEM_ERROR", "系统异常，请稍后重试")
	case v.State == StateFailed && c.op == opRefund:
		answer = wechatError(http.StatusForbidden, "USER_ACCOUNT_ABNORMAL", "用户账户注销")
	}
	return w.sign(answer, v.forged)
}

// RefundCallback is an encrypted notification.
func (w *wechat) RefundCallback(f RefundFact) (Message, bool, error) {
	resource := object{
		"mchid": wechatMch, "out_trade_no": f.Payment.Ref, "transaction_id": f.Payment.TradeNo, "out_refund_no": f.No,
		"refund_id":     f.SupplierNo,
		"refund_status": wechatRefundWords[f.State], "success_time": f.At.Format(time.RFC3339), "user_received_account": "支付用户零钱",
		"amount": object{"total": f.Payment.Amount, "refund": f.Amount, "payer_total": f.Payment.Amount, "payer_refund": f.Amount},
	}
	if f.No == "" { // made in WeChat Pay's back office, which assigns its own number
		resource["out_refund_no"] = "WX" + f.SupplierNo
	}
	kind := map[State]string{StateSuccess: "REFUND.SUCCESS", StateFailed: "REFUND.CLOSED", StateAbnormal: "REFUND.ABNORMAL"}[f.State]
	if kind == "" {
		return Message{}, false, nil
	}
	m, err := w.sealed("EV-"+f.SupplierNo+string(f.State), kind, "refund", time.Now(), resource)
	return m, true, err
}

// Alipay: alipay.trade.refund, alipay.trade.fastpay.refund.query; the payment's own
// notification contains the refunded total.

func (a *alipay) refundNo(no string) string { return "" }

// readRefund reads the call into c and returns the name of an invalid field; "" = none.
func (a *alipay) readRefund(c *call, biz string) string {
	var asked struct {
		OutRequestNo string `json:"out_request_no"`
		RefundAmount string `json:"refund_amount"`
	}
	if json.Unmarshal([]byte(biz), &asked) != nil || asked.OutRequestNo == "" || strings.Trim(asked.OutRequestNo, letters) != "" {
		return "out_request_no"
	}
	c.refund = asked.OutRequestNo
	if c.op == opRefundQuery {
		return ""
	}
	var err error
	if c.amount, err = money.ParseMajor(asked.RefundAmount, "CNY"); err != nil || c.amount == 0 {
		return "refund_amount"
	}
	return ""
}

func (a *alipay) answerRefund(c call, v refundView) (reply, error) {
	node := object{"code": "10000", "msg": "Success"}
	fail := func(sub, message string) {
		node = object{"code": "40004", "msg": "Business Failed", "sub_code": sub, "sub_msg": message}
	}
	yuan := money.Format(v.Amount, "CNY")
	switch {
	case v.outcome == unknownRef && c.op == opRefund:
		fail("ACQ.TRADE_NOT_EXIST", "交易不存在")
	case v.outcome == unknownRef, c.op == opRefundQuery && v.State != StateSuccess: // no refund_status
	case v.outcome == inconsistent:
		fail("ACQ.DISCORDANT_REPEAT_REQUEST", "请求重入时，参数与首次请求时不一致")
	case v.outcome == refused, v.State == StateFailed:
		fail("ACQ.REASON_TRADE_REFUND_FEE_ERR", "退款金额无效")
	case v.State == StateShort:
		fail("ACQ.SELLER_BALANCE_NOT_ENOUGH", "卖家余额不足")
	case v.State == StateNotFound:
		fail("ACQ.SYSTEM_ERROR", "系统错误")
	case c.op == opRefundQuery:
		node["trade_no"], node["out_trade_no"], node["out_request_no"] = v.Payment.TradeNo, v.Payment.Ref, v.No
		node["refund_amount"], node["total_amount"], node["refund_status"] = yuan, money.Format(v.Payment.Amount, "CNY"), "REFUND_SUCCESS"
	default:
		node["trade_no"], node["out_trade_no"], node["refund_fee"] = v.Payment.TradeNo, v.Payment.Ref, money.Format(v.Sum, "CNY")
		node["fund_change"] = "Y"
		if v.State != StateSuccess {
			node["fund_change"] = "N"
		}
	}
	return a.signed(c.variant, node, v.forged)
}

// RefundCallback repeats the payment's notification with the total of its refunds.
func (a *alipay) RefundCallback(f RefundFact) (Message, bool, error) {
	if f.State != StateSuccess {
		return Message{}, false, nil
	}
	at := f.At.In(beijing).Format(time.DateTime)
	fields := map[string]string{
		"notify_id": "n" + f.Payment.TradeNo + strconv.FormatInt(f.Sum, 10), "notify_time": at, "notify_type": "trade_status_sync",
		"app_id": alipayApp, "seller_id": alipaySeller, "charset": "utf-8", "version": "1.0",
		"out_trade_no": f.Payment.Ref, "trade_no": f.Payment.TradeNo, "trade_status": "TRADE_SUCCESS",
		"total_amount": money.Format(f.Payment.Amount, "CNY"), "refund_fee": money.Format(f.Sum, "CNY"), "gmt_refund": at + ".123",
	}
	if f.Sum >= f.Payment.Amount {
		fields["trade_status"] = "TRADE_CLOSED"
	}
	signature, err := rsaSign(a.own, sortedPairs(fields))
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	return formMessage(fields), true, err
}

// Stripe: docs.stripe.com/api/refunds.

func (s *stripe) refundNo(no string) string { return "re_3" + s.hex(23, "refund", no) }

func (s *stripe) readRefund(c call, r *http.Request, fields map[string]string) (call, *reply) {
	var err error
	if c.amount, err = money.ParseMinor(fields["amount"]); err != nil || c.amount == 0 {
		return c, s.invalid("amount", "Invalid integer")
	}
	c.id, c.content = fields["payment_intent"], sortedPairs(fields)
	if c.refund = r.Header.Get("Idempotency-Key"); c.refund == "" || fields["metadata[refund_no]"] != c.refund {
		return c, s.invalid("metadata", "the simulator identifies refunds by Idempotency-Key: set metadata[refund_no] to the same value")
	}
	return c, nil
}

var stripeRefundWords = map[State]string{
	StateProcessing: "pending", StateSuccess: "succeeded", StateFailed: "failed", StateReturned: "failed",
}

func (s *stripe) refundObject(f RefundFact) object {
	metadata := map[string]string{}
	if f.No != "" {
		metadata["refund_no"], metadata["order_no"] = f.No, f.Payment.Ref
	}
	return object{
		"id": f.SupplierNo, "object": "refund", "amount": f.Amount, "currency": strings.ToLower(f.Payment.Currency), "metadata": metadata,
		"payment_intent": f.Payment.TradeNo, "charge": "ch_" + strings.TrimPrefix(f.Payment.TradeNo, "pi_"),
		"status":  stripeRefundWords[f.State],
		"created": f.At.Unix(), "reason": nil,
	}
}

func (s *stripe) answerRefund(c call, v refundView) (reply, error) {
	switch {
	case c.op == opRefundQuery:
		all := []object{}
		for _, f := range v.all {
			all = append(all, s.refundObject(f))
		}
		return jsonReply(http.StatusOK, object{"object": "list", "url": "/v1/refunds", "has_more": false, "data": all}), nil
	case v.outcome == unknownRef:
		return stripeError(http.StatusNotFound, "invalid_request_error", "resource_missing", "No such payment_intent: '"+c.id+"'"), nil
	case v.outcome == inconsistent:
		return stripeError(http.StatusBadRequest, "idempotency_error", "",
			"Keys for idempotent requests can only be used with the same parameters they were first used with."), nil
	case v.outcome == refused:
		return stripeError(http.StatusBadRequest, "invalid_request_error", "charge_already_refunded", "Charge has already been refunded."),
			nil
	case v.State == StateShort:
		return stripeError(http.StatusBadRequest, "invalid_request_error", "balance_insufficient",
			"Insufficient funds in your Stripe balance."), nil
	case v.State == StateNotFound:
		return s.failed(), nil
	}
	return jsonReply(http.StatusOK, s.refundObject(v.RefundFact)), nil
}

// RefundCallback is refund.updated, or refund.failed.
func (s *stripe) RefundCallback(f RefundFact) (Message, bool, error) {
	kind := "refund.updated"
	if stripeRefundWords[f.State] == "failed" {
		kind = "refund.failed"
	}
	at := f.Payment
	at.At = time.Now()
	m, err := s.event(at, "evt_"+f.SupplierNo+string(f.State), kind, s.refundObject(f))
	return m, true, err
}

// Sorted parameters, as the contract has them.

func (s *sorted) refundNo(no string) string { return "TR" + s.digits(18, "refund", no) }

var sortedRefundWords = map[State]string{
	StateProcessing: "DOING", StateSuccess: "OK", StateFailed: "REFUSED", StateReturned: "RETURNED", StateNotFound: "NONE",
}

func (s *sorted) answerRefund(c call, v refundView) (reply, error) {
	word := sortedRefundWords[v.State]
	switch {
	case v.outcome == inconsistent:
		return textReply(http.StatusConflict, "fail: refund_no was used with other parameters"), nil
	case v.outcome == unknownRef && c.op == opRefund, v.outcome == refused, v.State == StateShort:
		word = "REFUSED"
	case v.State == StateNotFound && c.op == opRefund:
		return s.failed(), nil
	}
	fields := map[string]string{"mch": sortedAccount, "order_no": v.Payment.Ref, "refund_no": v.No, "result": word}
	if v.outcome == unknownRef {
		fields["order_no"] = c.ref
	}
	if v.SupplierNo != "" {
		fields["trade_no"] = v.SupplierNo
	}
	fields["sign"] = hmacHex(s.key, sortedPairs(fields, "sign"))
	if v.forged {
		fields["sign"] = hmacHex(s.key, "0"+sortedPairs(fields, "sign"))
	}
	return jsonReply(http.StatusOK, fields), nil
}

// RefundCallback: such suppliers send none; they are queried.
func (s *sorted) RefundCallback(RefundFact) (Message, bool, error) { return Message{}, false, nil }
