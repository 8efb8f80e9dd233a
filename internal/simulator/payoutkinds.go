package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
)

// How each kind with payouts reads and answers calls about them, and calls back about them.

// Alipay: alipay.fund.trans.uni.transfer, alipay.fund.trans.common.query, and the notification
// alipay.fund.trans.order.changed.

func (a *alipay) payoutNo(no string) string { return "2026" + a.digits(28, "payout", no) }

// alipayProducts are the product_code by identity_type.
var alipayProducts = map[string]string{
	"ALIPAY_USER_ID": "TRANS_ACCOUNT_NO_PWD", "ALIPAY_LOGON_ID": "TRANS_ACCOUNT_NO_PWD", "BANKCARD_ACCOUNT": "TRANS_BANKCARD_NO_PWD",
}

// readPayout reads the call into c and returns the name of an invalid field; "" = none.
func (a *alipay) readPayout(c *call, biz string) string {
	var asked struct {
		OutBizNo    string `json:"out_biz_no"`
		TransAmount string `json:"trans_amount"`
		ProductCode string `json:"product_code"`
		BizScene    string `json:"biz_scene"`
		OrderTitle  string `json:"order_title"`
		PayeeInfo   struct {
			Identity     string `json:"identity"`
			IdentityType string `json:"identity_type"`
			Name         string `json:"name"`
			BankCard     struct {
				AccountType string `json:"account_type"`
			} `json:"bankcard_ext_info"`
		} `json:"payee_info"`
	}
	err := json.Unmarshal([]byte(biz), &asked)
	payee := asked.PayeeInfo
	switch {
	case err != nil:
		return "biz_content"
	case asked.OutBizNo == "" || len(asked.OutBizNo) > 64 || strings.Trim(asked.OutBizNo, letters) != "":
		return "out_biz_no"
	case asked.BizScene != "DIRECT_TRANSFER":
		return "biz_scene"
	case asked.ProductCode != "TRANS_ACCOUNT_NO_PWD" && asked.ProductCode != "TRANS_BANKCARD_NO_PWD":
		return "product_code"
	}
	c.payout, c.currency = asked.OutBizNo, "CNY"
	if c.op == opPayoutQuery {
		return ""
	}
	switch {
	case asked.OrderTitle == "":
		return "order_title"
	case payee.Identity == "" || alipayProducts[payee.IdentityType] != asked.ProductCode:
		return "payee_info"
	case payee.Name == "" && payee.IdentityType != "ALIPAY_USER_ID":
		return "name"
	case payee.IdentityType == "BANKCARD_ACCOUNT" && payee.BankCard.AccountType != "1" && payee.BankCard.AccountType != "2":
		return "bankcard_ext_info"
	}
	if c.amount, err = money.ParseMajor(asked.TransAmount, "CNY"); err != nil || c.amount < 10 {
		return "trans_amount"
	}
	return ""
}

var alipayPayoutWords = map[State]string{
	StateProcessing: "DEALING", StateSuccess: "SUCCESS", StateFailed: "FAIL", StateReturned: "REFUND",
}

func (a *alipay) answerPayout(c call, v payoutView) (reply, error) {
	node := object{"code": "10000", "msg": "Success", "out_biz_no": v.No}
	fail := func(sub, message string) {
		node = object{"code": "40004", "msg": "Business Failed", "sub_code": sub, "sub_msg": message, "out_biz_no": v.No}
	}
	switch {
	case v.outcome == unknownRef:
		fail("ORDER_NOT_EXIST", "转账订单不存在")
	case v.outcome == inconsistent:
		fail("PAYMENT_INFO_INCONSISTENCY", "两次请求商户单号一样，但是参数不一致")
	case v.State == StateShort:
		fail("PAYER_BALANCE_NOT_ENOUGH", "付款方余额不足")
	case v.State == StateNotFound:
		fail("SYSTEM_ERROR", "系统繁忙")
	case v.State == StateFailed && c.op == opPayout:
		fail("PAYEE_NOT_EXIST", "收款账号不存在")
	default:
		node["order_id"], node["status"] = v.SupplierNo, alipayPayoutWords[v.State]
		at := v.At.In(beijing).Format(time.DateTime)
		switch {
		case v.State == StateFailed || v.State == StateReturned:
			node["error_code"], node["fail_reason"] = "PAYEE_CARD_INFO_ERROR", "收款方卡信息错误"
		case c.op == opPayout:
			node["trans_date"] = at
		case v.State == StateSuccess:
			node["pay_date"], node["trans_amount"] = at, money.Format(v.Amount, "CNY")
		}
	}
	return a.signed(c.variant, node, v.forged)
}

// PayoutCallback is a message of the application's gateway, with the payout in its biz_content.
func (a *alipay) PayoutCallback(f PayoutFact) (Message, error) {
	biz, err := json.Marshal(object{
		"action_type": "FINISH", "biz_scene": "DIRECT_TRANSFER", "origin_interface": "alipay.fund.trans.uni.transfer", "out_biz_no": f.No,
		"order_id":     f.SupplierNo,
		"product_code": "TRANS_ACCOUNT_NO_PWD", "status": alipayPayoutWords[f.State], "trans_amount": money.Format(f.Amount, "CNY"),
	})
	if err != nil {
		return Message{}, err
	}
	fields := map[string]string{
		"notify_id": "n" + f.SupplierNo + string(f.State), "utc_timestamp": strconv.FormatInt(f.At.UnixMilli(), 10),
		"msg_method": "alipay.fund.trans.order.changed",
		"app_id":     alipayApp, "charset": "utf-8", "version": "1.1", "biz_content": string(biz),
	}
	signature, err := rsaSign(a.own, sortedPairs(fields))
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	return formMessage(fields), err
}

// Sorted parameters, as the contract has them.

func (s *sorted) payoutNo(no string) string { return "TP" + s.digits(18, "payout", no) }

// readPayout reads the call into c and returns the name of an invalid field; "" = none.
func (s *sorted) readPayout(c *call, fields map[string]string) string {
	if c.payout = fields["payout_no"]; c.payout == "" || c.payout != fields["order_no"] {
		return "payout_no"
	}
	if c.op == opPayoutQuery {
		return ""
	}
	var payee struct{ Kind, Holder, Number, Bank string }
	if json.Unmarshal([]byte(fields["payee"]), &payee) != nil || payee.Kind == "" || payee.Number == "" {
		return "payee"
	}
	c.currency, c.notifyURL = fields["currency"], fields["notify_url"]
	if _, err := money.Exponent(c.currency); err != nil {
		return "currency"
	}
	var err error
	if c.amount, err = money.ParseMinor(fields["amount"]); err != nil || c.amount == 0 {
		return "amount"
	}
	return ""
}

func (s *sorted) answerPayout(c call, v payoutView) (reply, error) {
	switch {
	case v.outcome == inconsistent:
		return textReply(http.StatusConflict, "fail: payout_no was used with other parameters"), nil
	case v.State == StateNotFound && c.op == opPayout:
		return s.failed(), nil
	}
	fields := s.payoutFields(v.PayoutFact)
	fields["sign"] = hmacHex(s.key, sortedPairs(fields, "sign"))
	if v.forged {
		fields["sign"] = hmacHex(s.key, "0"+sortedPairs(fields, "sign"))
	}
	return jsonReply(http.StatusOK, fields), nil
}

// payoutFields returns the contents of answers and callbacks about a payout.
func (s *sorted) payoutFields(f PayoutFact) map[string]string {
	fields := map[string]string{"mch": sortedAccount, "order_no": f.No, "payout_no": f.No, "result": sortedRefundWords[f.State]}
	if f.SupplierNo != "" {
		fields["trade_no"], fields["amount"], fields["currency"] = f.SupplierNo, strconv.FormatInt(f.Amount, 10), f.Currency
	}
	return fields
}

// PayoutCallback is a form with the same fields as an answer.
func (s *sorted) PayoutCallback(f PayoutFact) (Message, error) {
	fields := s.payoutFields(f)
	fields["sign"] = hmacHex(s.key, sortedPairs(fields))
	return formMessage(fields), nil
}
