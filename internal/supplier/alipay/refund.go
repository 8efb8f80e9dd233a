package alipay

import (
	"cmp"
	"context"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

const maxReason = 256 // docs.open.alipay.com/api_1/alipay.trade.refund, refund_reason

// refundContent is the biz_content of alipay.trade.refund.
type refundContent struct {
	OutTradeNo   string `json:"out_trade_no"`
	RefundAmount string `json:"refund_amount"` // yuan
	OutRequestNo string `json:"out_request_no"`
	RefundReason string `json:"refund_reason,omitempty"`
}

// refundQueried is the biz_content of alipay.trade.fastpay.refund.query.
type refundQueried struct {
	OutTradeNo   string `json:"out_trade_no"`
	OutRequestNo string `json:"out_request_no"`
}

// refundRefusals are the sub_codes of alipay.trade.refund (业务错误码) that rule out a refund
// under this number. TRADE_STATUS_ERROR and TRADE_HAS_FINISHED are left out: a full refund ends
// its trade, so they may be about an earlier call.
var refundRefusals = map[string]supplier.RefundState{
	"ACQ.SELLER_BALANCE_NOT_ENOUGH":   supplier.RefundShort,
	"ACQ.INVALID_PARAMETER":           supplier.RefundFailed,
	"ACQ.TRADE_NOT_EXIST":             supplier.RefundFailed,
	"ACQ.TRADE_NOT_ALLOW_REFUND":      supplier.RefundFailed,
	"ACQ.REASON_TRADE_REFUND_FEE_ERR": supplier.RefundFailed,
}

// Refund makes a refund (alipay.trade.refund). Calls with the same out_request_no are one refund,
// at any time. Code 10000 only means that the call was accepted: fund_change says whether it
// moved money, and refund_fee is the total of all refunds of the trade.
func (c *calls) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.trade.refund", "", refundContent{
		OutTradeNo: r.Reference, RefundAmount: money.Format(r.Amount, currency), OutRequestNo: r.No,
		RefundReason: textlimit.Cut(r.Reason, maxReason),
	})
	said := supplier.RefundReport{
		No: r.No, Reference: cmp.Or(n.OutTradeNo, r.Reference), Amount: r.Amount, Currency: currency,
		Word: n.word(),
	}
	switch {
	case err != nil:
		return x.RefundUnknown(class, err), nil
	case n.Code == codeRefused:
		said.State = refundRefusals[n.SubCode]
	case n.Code == codeSuccess && n.OutTradeNo == "":
		return x.RefundUnknown(supplier.ClassBadAnswer, otherOrder.Say(`""`)), nil
	case n.Code == codeSuccess && n.FundChange == "Y":
		said.State = supplier.RefundSucceeded
	case n.Code == codeSuccess && n.FundChange == "N":
		return x.RefundUnknown(supplier.ClassOK, noFundChange.Say()), nil
	}
	return x.EvaluateRefund(r, said), nil
}

// RefundQuery queries by our own number (alipay.trade.fastpay.refund.query). An answer without
// refund_status means that there is no such refund (response:
// 未返回该字段表示退款请求未收到或者退款失败).
func (c *calls) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.trade.fastpay.refund.query", "", refundQueried{r.Reference, r.No})
	said := supplier.RefundReport{
		No: cmp.Or(n.OutRequestNo, r.No), Reference: cmp.Or(n.OutTradeNo, r.Reference), Currency: currency,
		Word: cmp.Or(n.RefundStatus, n.word()),
	}
	switch {
	case err != nil:
		return x.RefundUnknown(class, err), nil
	case n.Code == codeRefused && n.SubCode == notExist:
		said.State = supplier.RefundNotFound
	case n.Code == codeRefused:
		return x.RefundUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(n.word()))), nil
	// The node's name is not signed: this may be the answer to a query of the trade.
	case n.Code == codeSuccess && (n.TradeStatus != "" || n.QRCode != "" || n.FundChange != ""):
		return x.RefundUnknown(supplier.ClassBadAnswer, otherAnswer.Say()), nil
	case n.Code == codeSuccess && n.RefundStatus == "REFUND_SUCCESS":
		said.State = supplier.RefundSucceeded
		if n.OutTradeNo == "" || n.OutRequestNo == "" {
			return x.RefundUnknown(supplier.ClassBadAnswer, otherOrder.Say(`""`)), nil
		}
		if said.Amount, err = money.ParseMajor(n.RefundAmount, currency); err != nil {
			return x.RefundUnknown(supplier.ClassBadAnswer, noAmount.Say("refund_amount", err)), nil
		}
	// An answer without a status that names the refund's amount does not mean "not found".
	case n.Code == codeSuccess && n.RefundStatus == "" && n.RefundAmount == "":
		said.State = supplier.RefundNotFound
	}
	return x.EvaluateRefund(r, said), nil
}

// refundable returns a *FieldError if Alipay cannot accept the refund.
func refundable(r supplier.Refund) error {
	switch {
	case !reference.MatchString(r.No):
		return &supplier.FieldError{Field: "refund_no", Problem: "Alipay takes at most 64 letters, digits and underscores"}
	case r.Currency != currency:
		return &supplier.FieldError{Field: "currency", Problem: "Alipay takes CNY only"}
	case r.Amount <= 0 || r.Amount > maxAmount:
		return &supplier.FieldError{Field: "amount", Problem: "Alipay takes 0.01 to 100000000 yuan"}
	}
	return queryable(r.Reference)
}
