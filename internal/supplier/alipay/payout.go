package alipay

import (
	"cmp"
	"context"
	"regexp"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// transfer is the biz_content of alipay.fund.trans.uni.transfer
// (docs.open.alipay.com/api_28/alipay.fund.trans.uni.transfer; alipay-sdk-java,
// AlipayFundTransUniTransferModel).
type transfer struct {
	OutBizNo    string      `json:"out_biz_no"`
	TransAmount string      `json:"trans_amount"` // yuan
	ProductCode string      `json:"product_code"`
	BizScene    string      `json:"biz_scene"`
	OrderTitle  string      `json:"order_title"`
	PayeeInfo   participant `json:"payee_info"`
}

// participant is the payee (alipay-sdk-java, Participant and BankcardExtInfo).
type participant struct {
	Identity     string    `json:"identity"`
	IdentityType string    `json:"identity_type"`
	Name         string    `json:"name,omitempty"` // if given, it must be the account's
	BankCard     *bankCard `json:"bankcard_ext_info,omitempty"`
}

type bankCard struct {
	AccountType string `json:"account_type"` // "2": a person's
	InstName    string `json:"inst_name,omitempty"`
}

// transferQueried is the biz_content of alipay.fund.trans.common.query. With out_biz_no, the other
// two are required (alipay-sdk-java, AlipayFundTransCommonQueryModel).
type transferQueried struct {
	OutBizNo    string `json:"out_biz_no"`
	ProductCode string `json:"product_code"`
	BizScene    string `json:"biz_scene"`
}

const (
	bizScene      = "DIRECT_TRANSFER"
	minTransfer   = 10 // fen: trans_amount is 0.1 to 100000000 yuan (AlipayFundTransUniTransferModel)
	maxTitle      = 128
	maxHolderName = 100
)

// userID matches an Alipay user id; any other identity is a login: e-mail or phone number
// (yq.aliyun.com/articles/711085: 以2088开头的16位纯数字).
var userID = regexp.MustCompile(`^2088[0-9]{12}$`)

// products are the product_code of each kind of payee (AlipayFundTransCommonQueryModel).
var products = map[string]string{
	supplier.PayeeAlipay:   "TRANS_ACCOUNT_NO_PWD",
	supplier.PayeeBankCard: "TRANS_BANKCARD_NO_PWD",
}

// transferWords maps each status of a transfer to its meaning (alipay-sdk-java,
// AlipayFundTransCommonQueryResponse and AlipayFundTransUniTransferResponse, status).
var transferWords = map[string]supplier.PayoutState{
	"SUCCESS":  supplier.PayoutSucceeded,  // 转账成功
	"FAIL":     supplier.PayoutFailed,     // 失败
	"DEALING":  supplier.PayoutProcessing, // 处理中: bank cards only
	"REFUND":   supplier.PayoutReturned,   // 退票: the bank sent the money back, also after SUCCESS
	"WAIT_PAY": supplier.PayoutProcessing, // 等待支付
	"CLOSED":   supplier.PayoutFailed,     // 订单超时关闭
}

// transferRefusals are the sub_codes of alipay.fund.trans.uni.transfer (业务错误码, also those of
// alipay.fund.trans.toaccount.transfer before it) that rule out a payout under this number. Those
// about the number itself are left out (PAYMENT_INFO_INCONSISTENCY), since they may be about an
// earlier call, and so are those about the payer, whose problem may pass.
var transferRefusals = map[string]supplier.PayoutState{
	"PAYER_BALANCE_NOT_ENOUGH":      supplier.PayoutShort, // 付款方余额不足: top up, then repeat the same request
	"BALANCE_IS_NOT_ENOUGH":         supplier.PayoutShort, // 余额不足
	"ACQ.SELLER_BALANCE_NOT_ENOUGH": supplier.PayoutShort,
	"INVALID_PARAMETER":             supplier.PayoutFailed, // 参数有误
	"PAYEE_NOT_EXIST":               supplier.PayoutFailed, // 收款账号不存在
	"PAYEE_USER_INFO_ERROR":         supplier.PayoutFailed, // 支付宝账号和姓名不匹配
	"PAYEE_ACC_OCUPIED":             supplier.PayoutFailed, // 该手机号对应多个支付宝账户 (spelled so)
	"PAYEE_CARD_INFO_ERROR":         supplier.PayoutFailed, // 收款方卡信息错误
	"CARD_BIN_ERROR":                supplier.PayoutFailed, // 收款人银行账号不正确
}

// noTransfer is the sub_code of a query that finds no transfer (转账订单不存在).
const noTransfer = "ORDER_NOT_EXIST"

// Payout makes a transfer (alipay.fund.trans.uni.transfer). Calls with the same out_biz_no are
// one transfer, at any time (如果商户重复请求转账，支付宝会幂等返回成功结果).
func (c *calls) Payout(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	if err := c.payable(p); err != nil {
		return supplier.PayoutAnswer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.fund.trans.uni.transfer", p.NotifyURL, transfer{
		OutBizNo: p.No, TransAmount: money.Format(p.Amount, currency), ProductCode: products[p.Payee.Kind], BizScene: bizScene,
		OrderTitle: textlimit.Cut(p.No, maxTitle), PayeeInfo: participantOf(p.Payee),
	})
	said := supplier.PayoutSaid{
		No: cmp.Or(n.OutBizNo, p.No), SupplierNo: n.OrderID, Amount: p.Amount, Currency: currency, Word: cmp.Or(n.Status, n.word()),
	}
	if err == nil && n.Code == codeRefused {
		said.State = transferRefusals[n.SubCode]
		return x.JudgePayout(p, said).Masked(p.Payee), nil
	}
	return c.transferred(x, class, err, p, n, said).Masked(p.Payee), nil
}

// PayoutQuery queries by our own number (alipay.fund.trans.common.query). A status may change
// from SUCCESS to REFUND.
func (c *calls) PayoutQuery(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	if err := c.payable(p); err != nil {
		return supplier.PayoutAnswer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.fund.trans.common.query", "", transferQueried{p.No, products[p.Payee.Kind], bizScene})
	said := supplier.PayoutSaid{
		No: cmp.Or(n.OutBizNo, p.No), SupplierNo: n.OrderID, Amount: p.Amount, Currency: currency, Word: cmp.Or(n.Status, n.word()),
	}
	if err == nil && n.Code == codeRefused && n.SubCode == noTransfer {
		said.State = supplier.PayoutNotFound
		return x.JudgePayout(p, said).Masked(p.Payee), nil
	}
	return c.transferred(x, class, err, p, n, said).Masked(p.Payee), nil
}

// transferred reads an answer that has the status of a transfer. The amount may be left out.
func (c *calls) transferred(x supplier.Exchange, class supplier.Class, err error, p supplier.Payout, n node,
	said supplier.PayoutSaid,
) supplier.PayoutAnswer {
	switch {
	case err != nil:
		return x.PayoutUnknown(class, err)
	case n.Code != codeSuccess:
		return x.PayoutUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(n.word())))
	// The node's name is not signed: this may be the answer to another call.
	case n.OutBizNo == "", n.TradeStatus != "", n.QRCode != "", n.FundChange != "", n.RefundStatus != "":
		return x.PayoutUnknown(supplier.ClassBadAnswer, otherTransfer.Say(quoted(n.OutBizNo)))
	}
	if sum := cmp.Or(n.TransAmount, n.Amount); sum != "" {
		if said.Amount, err = money.ParseMajor(sum, currency); err != nil {
			return x.PayoutUnknown(supplier.ClassBadAnswer, noAmount.Say("trans_amount", err))
		}
	}
	said.State = transferWords[n.Status]
	return x.JudgePayout(p, said)
}

func participantOf(p supplier.Payee) participant {
	if p.Kind == supplier.PayeeBankCard {
		return participant{p.Number, "BANKCARD_ACCOUNT", p.Holder, &bankCard{"2", p.Bank}}
	}
	if userID.MatchString(p.Number) {
		return participant{p.Number, "ALIPAY_USER_ID", p.Holder, nil}
	}
	return participant{p.Number, "ALIPAY_LOGON_ID", p.Holder, nil}
}

// Payable returns a *FieldError if Alipay cannot pay out the amount.
func (*calls) Payable(amount int64, of string) error {
	switch {
	case of != currency:
		return &supplier.FieldError{Field: "currency", Problem: "Alipay takes CNY only"}
	case amount < minTransfer || amount > maxAmount:
		return &supplier.FieldError{Field: "amount", Problem: "Alipay pays out 0.10 to 100000000 yuan"}
	}
	return nil
}

// payable returns a *FieldError if Alipay cannot accept the payout.
func (c *calls) payable(p supplier.Payout) error {
	if !reference.MatchString(p.No) {
		return &supplier.FieldError{Field: "payout_no", Problem: "Alipay takes at most 64 letters, digits and underscores"}
	}
	if err := c.Payable(p.Amount, p.Currency); err != nil {
		return err
	}
	switch {
	case products[p.Payee.Kind] == "":
		return &supplier.FieldError{Field: "account", Problem: "Alipay pays to accounts of kind alipay or bank_card"}
	case p.Payee.Number == "" || len(p.Payee.Number) > maxHolderName:
		return &supplier.FieldError{Field: "account", Problem: "the number of the payee's account must have 1 to 100 bytes"}
	case p.Payee.Holder == "" && !userID.MatchString(p.Payee.Number):
		return &supplier.FieldError{Field: "account", Problem: "the payee's account needs a holder: Alipay compares the name"}
	}
	return nil
}
