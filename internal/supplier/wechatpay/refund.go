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

// refundNumbers matches a valid out_refund_no (申请退款: 只能是数字、大小写字母_-|*@, 64).
var refundNumbers = regexp.MustCompile(`^[0-9A-Za-z_\-|*@]{1,64}$`)

// maxReason is the limit of 申请退款 (string(80)), counted in bytes to be safe.
const maxReason = 80

// refundOrder is the body of 申请退款. A repeat must have the same value in every field.
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

// refundAnswer is a refund in the answers of 申请退款 and 查询单笔退款.
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

// refundWords are the meanings of a refund's status and, prefixed by their HTTP status, of those
// errors of 申请退款 and 查询单笔退款 (错误码) that say something about the refund. Other errors
// may be about an earlier call (INVALID_REQUEST), our keys, or a temporary condition.
var refundWords = map[string]supplier.RefundState{
	"SUCCESS": supplier.RefundSucceeded, "CLOSED": supplier.RefundFailed, "PROCESSING": supplier.RefundProcessing,
	// The buyer's account cannot receive it; it can still be paid or closed in WeChat Pay's back office.
	"ABNORMAL": supplier.RefundAbnormal,

	"403 NOT_ENOUGH":            supplier.RefundShort,
	"400 PARAM_ERROR":           supplier.RefundFailed,
	"403 USER_ACCOUNT_ABNORMAL": supplier.RefundFailed,
	"404 MCH_NOT_EXISTS":        supplier.RefundFailed,
}

// Refund makes a refund (申请退款). Calls with the same number and content are one refund, at any
// time.
func (a *adapter) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	o := refundOrder{OutTradeNo: r.Reference, OutRefundNo: r.No, Reason: textlimit.Cut(r.Reason, maxReason), NotifyURL: r.NotifyURL}
	o.Amount.Refund, o.Amount.Total, o.Amount.Currency = r.Amount, r.Total, r.Currency
	body, err := json.Marshal(o)
	if err != nil {
		return supplier.RefundAnswer{}, fmt.Errorf("encode the refund: %w", err)
	}
	x, code, err := a.call(ctx, http.MethodPost, "/v3/refund/domestic/refunds", body, http.StatusOK)
	if err == nil {
		return a.judgeRefund(x, r), nil
	}
	word := strconv.Itoa(x.Status) + " " + code
	if state := refundWords[word]; x.Class == supplier.ClassRefused && state != "" {
		return x.EvaluateRefund(r, supplier.RefundReport{No: r.No, Reference: r.Reference, State: state, Word: code}), nil
	}
	answer := x.RefundUnknown("", err)
	answer.Word = code
	return answer, nil
}

// RefundQuery queries by our own number (查询单笔退款).
func (a *adapter) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	x, code, err := a.call(ctx, http.MethodGet, "/v3/refund/domestic/refunds/"+url.PathEscape(r.No), nil, http.StatusOK)
	switch {
	case err == nil:
		return a.judgeRefund(x, r), nil
	case x.Class == supplier.ClassRefused && x.Status == http.StatusNotFound && code == "RESOURCE_NOT_EXISTS":
		return x.EvaluateRefund(r, supplier.RefundReport{No: r.No, Reference: r.Reference, State: supplier.RefundNotFound, Word: code}), nil
	}
	return x.RefundUnknown("", err), nil
}

// judgeRefund reads an answer that contains a refund.
func (a *adapter) judgeRefund(x supplier.Exchange, r supplier.Refund) supplier.RefundAnswer {
	var got refundAnswer
	if err := supplier.DecodeJSON(x.Body, &got); err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, err)
	}
	said := supplier.RefundReport{
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
	return x.EvaluateRefund(r, said)
}

// statusOf returns the meaning of a status; the words of errors do not count.
func statusOf(status string) supplier.RefundState {
	if state := refundWords[status]; state != "" && status[0] > '9' {
		return state
	}
	return supplier.RefundUnknown
}

// refundable returns a *FieldError if WeChat Pay cannot accept the refund.
func refundable(r supplier.Refund) error {
	switch {
	case !references.MatchString(r.Reference):
		return wrong("order_no", "WeChat Pay accepts 6 to 32 letters, digits and _-|*")
	case !refundNumbers.MatchString(r.No):
		return wrong("refund_no", "WeChat Pay accepts up to 64 letters, digits and _-|*@")
	case r.Currency != "CNY":
		return wrong("currency", "WeChat Pay accepts only CNY")
	case r.Amount <= 0 || r.Amount > r.Total:
		return wrong("amount", "must be above 0, and at most what was paid")
	}
	return nil
}
