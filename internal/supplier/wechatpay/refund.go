package wechatpay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// refundNumbers is what an out_refund_no may be (申请退款: 只能是数字、大小写字母_-|*@, 64).
var refundNumbers = regexp.MustCompile(`^[0-9A-Za-z_\-|*@]{1,64}$`)

// maxReason is that of 申请退款 (string(80)), in bytes to be below it in any count.
const maxReason = 80

// refundOrder is the body of 申请退款. A repeat must have every field as it was.
type refundOrder struct {
	OutTradeNo  string `json:"out_trade_no"`
	OutRefundNo string `json:"out_refund_no"`
	Reason      string `json:"reason,omitempty"`
	NotifyURL   string `json:"notify_url,omitempty"`
	Amount      struct {
		Refund   int64  `json:"refund"`
		Total    int64  `json:"total"` // of the payment, not of the refund
		Currency string `json:"currency"`
	} `json:"amount"`
}

// refundAnswer is a refund as 申请退款 and 查询单笔退款 answer it.
type refundAnswer struct {
	RefundID    string `json:"refund_id"`
	OutRefundNo string `json:"out_refund_no"`
	OutTradeNo  string `json:"out_trade_no"`
	Status      string `json:"status"`
	Amount      struct {
		Refund   json.RawMessage `json:"refund"`
		Currency string          `json:"currency"`
	} `json:"amount"`
}

// refundWords are the words of a refund's status, and the errors of 申请退款 and
// 查询单笔退款 (错误码) behind their HTTP status that say something of the refund. Others may be
// about a call that was made before (INVALID_REQUEST), about our keys, or the moment.
var refundWords = map[string]supplier.RefundState{
	"SUCCESS": supplier.RefundSucceeded, "CLOSED": supplier.RefundFailed, "PROCESSING": supplier.RefundProcessing,
	// The buyer's account cannot take it: WeChat Pay's own page can still pay it out, or close it.
	"ABNORMAL": supplier.RefundAbnormal,

	"403 NOT_ENOUGH":            supplier.RefundShort,
	"400 PARAM_ERROR":           supplier.RefundFailed,
	"403 USER_ACCOUNT_ABNORMAL": supplier.RefundFailed,
	"404 MCH_NOT_EXISTS":        supplier.RefundFailed,
}

// Refund gives money back (申请退款). The same number with the same content is one refund, at
// any time.
func (a *adapter) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	o := refundOrder{OutTradeNo: r.Reference, OutRefundNo: r.No, Reason: textlimit.Cut(r.Reason, maxReason), NotifyURL: r.NotifyURL}
	o.Amount.Refund, o.Amount.Total, o.Amount.Currency = r.Amount, r.Total, r.Currency
	body, err := json.Marshal(o)
	if err != nil {
		return supplier.RefundAnswer{}, fmt.Errorf("write the refund: %w", err)
	}
	x, code, err := a.call(ctx, http.MethodPost, "/v3/refund/domestic/refunds", body, http.StatusOK)
	if err == nil {
		return a.judgeRefund(x, r), nil
	}
	word := strconv.Itoa(x.Status) + " " + code
	if state := refundWords[word]; x.Class == supplier.ClassRefused && state != "" {
		return x.JudgeRefund(r, supplier.RefundSaid{No: r.No, Reference: r.Reference, State: state, Word: code}), nil
	}
	answer := x.RefundUnknown("", err)
	answer.Word = code
	return answer, nil
}

// RefundQuery asks by our own number (查询单笔退款).
func (a *adapter) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	x, code, err := a.call(ctx, http.MethodGet, "/v3/refund/domestic/refunds/"+url.PathEscape(r.No), nil, http.StatusOK)
	switch {
	case err == nil:
		return a.judgeRefund(x, r), nil
	case x.Class == supplier.ClassRefused && x.Status == http.StatusNotFound && code == "RESOURCE_NOT_EXISTS":
		return x.JudgeRefund(r, supplier.RefundSaid{No: r.No, Reference: r.Reference, State: supplier.RefundNotFound, Word: code}), nil
	}
	return x.RefundUnknown("", err), nil
}

// judgeRefund reads a refund that is there.
func (a *adapter) judgeRefund(x supplier.Exchange, r supplier.Refund) supplier.RefundAnswer {
	var got refundAnswer
	if err := supplier.DecodeJSON(x.Body, &got); err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, err)
	}
	said := supplier.RefundSaid{
		No: got.OutRefundNo, SupplierNo: got.RefundID, Reference: got.OutTradeNo, Currency: cmp.Or(got.Amount.Currency, "CNY"),
		State: statusOf(got.Status), Word: got.Status,
	}
	var err error
	if said.Amount, err = money.ParseMinor(string(got.Amount.Refund)); err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, noAmount.Say(err))
	}
	if got.RefundID == "" {
		return x.RefundUnknown(supplier.ClassBadAnswer, noValue.Say("refund_id"))
	}
	return x.JudgeRefund(r, said)
}

// statusOf is the meaning of a status; an error's word is none.
func statusOf(status string) supplier.RefundState {
	if state := refundWords[status]; state != "" && status[0] > '9' {
		return state
	}
	return supplier.RefundUnknown
}

// refundable is a *FieldError where WeChat Pay cannot take the refund.
func refundable(r supplier.Refund) error {
	switch {
	case !references.MatchString(r.Reference):
		return wrong("order_no", "WeChat Pay takes 6 to 32 letters, digits and _-|*")
	case !refundNumbers.MatchString(r.No):
		return wrong("refund_no", "WeChat Pay takes up to 64 letters, digits and _-|*@")
	case r.Currency != "CNY":
		return wrong("currency", "WeChat Pay takes CNY only")
	case r.Amount <= 0 || r.Amount > r.Total:
		return wrong("amount", "must be above 0, and at most what was paid")
	}
	return nil
}
