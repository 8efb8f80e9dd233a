package wording

import (
	"encoding/json"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/views/link"
	"backstop/views/ui"
)

func ExceptionOutcome(o exception.Outcome) text.Text { return ui.TextFor(outcomeWords, o) }

var outcomeWords = map[exception.Outcome]text.Text{
	exception.RefundedElsewhere: {ZH: "已在别处退款", EN: "Refunded elsewhere"},
	exception.AcceptedElsewhere: {ZH: "已在别处入账", EN: "Accepted elsewhere"},
	exception.NoEffect:          {ZH: "无资金影响", EN: "No effect on money"},
	exception.BookedPaid:        {ZH: "该笔支付已入账", EN: "The payment is booked"},
	exception.Accepted:          {ZH: "已入账", EN: "Accepted"},
	exception.KeepSurplus:       {ZH: "归商户，暂挂账", EN: "For the merchant, held in suspense"},
	exception.OweBack:           {ZH: "应退还买家，暂挂账", EN: "Owed to the buyer, held in suspense"},
	exception.RefundMade:        {ZH: "退款已成功", EN: "The refund succeeded"},
	exception.RefundNotMade:     {ZH: "退款未成功", EN: "The refund was not made"},
	exception.Booked:            {ZH: "已自动入账", EN: "Booked automatically"},
}

// ExceptionEnd is how an exception about money ended, in one line; "" = nothing is
// known of it.
func ExceptionEnd(p *ui.Page, x *exception.Item) string {
	if x.Outcome == "" {
		return ""
	}
	ended := p.T(ExceptionOutcome(x.Outcome))
	if x.Reference != "" {
		ended += " · " + p.T(text.Proof) + p.T(text.Colon) + x.Reference
	}
	return ended
}

// DisputeHref leads to the dispute that an exception's detail names; "" = it names none, as that of
// an inquiry.
func DisputeHref(detail json.RawMessage) string {
	var d struct {
		Dispute string `json:"dispute"`
	}
	if json.Unmarshal(detail, &d) != nil || d.Dispute == "" {
		return ""
	}
	return string(link.Dispute(d.Dispute))
}

// ExceptionIcon is the icon of a kind of exceptions.
func ExceptionIcon(kind string) string {
	switch kind {
	case "notify_exhausted":
		return "inbox"
	case "amount_mismatch", "currency_mismatch", "duplicate_payment":
		return "scale"
	case "dispute_opened", "complaint":
		return "shield-alert"
	case "late_payment", "stuck_paying":
		return "hourglass"
	case "unknown_order", "account_mismatch", "unknown_refund", "unknown_event":
		return "search"
	}
	return "triangle-alert"
}
