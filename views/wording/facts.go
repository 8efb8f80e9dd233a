package wording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/sweep"
	"backstop/views/ui"
)

// ExceptionFacts reads an exception's detail. ok is false where it is no object: then it is
// shown as it is.
func ExceptionFacts(p *ui.Page, x exception.Item) (all []ui.Fact, ok bool) {
	var fields map[string]any
	if json.Unmarshal(x.Detail, &fields) != nil {
		return nil, false
	}
	if reason, ok := fields["said"].(map[string]any); ok { // the code of the reason, which has it in English
		fields["reason"] = Message(p, messageOf(reason))
		delete(fields, "said")
	}
	var d disputeFacts
	_ = json.Unmarshal(x.Detail, &d) // what cannot be read wants nothing
	if x.Kind == exception.DisputeOpened && d.due() != 0 && !d.wantsEvidence() {
		delete(fields, "due_by")
	}
	if x.Kind == exception.BooksDiffer {
		fields = differingFields(p, x.Detail)
	}
	for _, d := range detailNames {
		if value, ok := fields[d.name]; ok && value != "" {
			all = append(all, ui.TextFact(d.label, "wrap", factOf(p, x, d.name, value)))
		}
		delete(fields, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of a newer program
		all = append(all, ui.TextFact(text.Text{ZH: name, EN: name}, "wrap", factOf(p, x, name, fields[name])))
	}
	return all, true
}

// differingFields are what a sweep found to differ; the rows have a panel of their own.
func differingFields(p *ui.Page, detail json.RawMessage) map[string]any {
	var d sweep.Difference
	_ = json.Unmarshal(detail, &d) // what cannot be read has no fields
	return map[string]any{"what": p.T(Figure(d.What)), "detail": Differences(p, d)}
}

// factOf is one of them in the person's language.
func factOf(p *ui.Page, x exception.Item, name string, value any) string {
	switch v := value.(type) {
	case float64:
		switch name {
		case "got", "want", "difference", "exceeds": // minor units
			return ui.MoneyText(int64(v), x.Currency)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		if text, ok := disputeFact(p, name, v); ok && x.Kind == exception.DisputeOpened {
			return text
		}
		switch name {
		case "type":
			return p.T(EventType(v))
		case "word":
			return SupplierWord(p, v)
		case "close_reason":
			return p.T(ui.CauseText(order.Cause(v)))
		case "last_error":
			return AttemptError(p, v)
		case "last_class":
			return p.T(ui.ClassText(notify.Class(v)))
		case "answer":
			if s, ok := ui.SaidTexts[v]; ok {
				return p.T(s)
			}
		case "status":
			if s, ok := ui.OrderStates[v]; ok {
				return p.T(s.Label)
			}
			if s, ok := ui.PayoutStates[v]; ok {
				return p.T(s.Label)
			}
			if s, ok := payoutWhys[v]; ok {
				return p.T(s)
			}
		}
	}
	return fmt.Sprint(value)
}

// payoutWhys are why a payout needs a person, besides its states.
var payoutWhys = map[string]text.Text{
	"returned": {ZH: "已退汇", EN: "Returned"},
}

// ExceptionDetail is an exception's detail in one line.
func ExceptionDetail(p *ui.Page, x exception.Item) string {
	all, ok := ExceptionFacts(p, x)
	if !ok {
		return string(x.Detail)
	}
	parts := make([]string, len(all))
	for i, f := range all {
		parts[i] = p.T(f.Label) + p.T(text.Colon) + f.Text
	}
	return strings.Join(parts, " · ")
}

// messageOf reads a stored code with its arguments.
func messageOf(fields map[string]any) (s text.Message) {
	s.Code, _ = fields["code"].(string)
	args, _ := fields["args"].([]any)
	for _, arg := range args {
		s.Args = append(s.Args, fmt.Sprint(arg))
	}
	return s
}

// detailNames are the details of an exception, in the order in which they are shown.
var detailNames = []struct {
	name  string
	label text.Text
}{
	{"what", text.Text{ZH: "统计或规则", EN: "Figure or rule"}},
	{"detail", text.Text{ZH: "差异", EN: "Differences"}},
	{"want", text.Text{ZH: "应为", EN: "Expected"}},
	{"got", text.Text{ZH: "收到", EN: "Received"}},
	{"difference", text.Text{ZH: "差额", EN: "Difference"}},
	{"field", text.Text{ZH: "字段", EN: "Field"}},
	{"reason", text.Text{ZH: "原因", EN: "Reason"}},
	{"status", text.Text{ZH: "状态", EN: "Status"}},
	{"due_by", text.Text{ZH: "举证截止", EN: "Evidence due by"}},
	{"dispute_no", text.DisputeNo},
	{"dispute", text.Text{ZH: "我方争议号", EN: "Our dispute number"}},
	{"order_amount", text.Text{ZH: "订单实付", EN: "Paid for the order"}},
	{"order_currency", text.Text{ZH: "订单币种", EN: "Currency of the order"}},
	{"booked_amount", text.Text{ZH: "已记账金额", EN: "Booked amount"}},
	{"booked_currency", text.Text{ZH: "记账币种", EN: "Booked currency"}},
	{"booked_entry", text.Text{ZH: "已入账分录", EN: "Booked by the entry"}},
	{"booked_status", text.Text{ZH: "已记账结果", EN: "Booked as"}},
	{"exceeds", text.Text{ZH: "超出可退部分", EN: "Above what was left of the payment"}},
	{"fee", text.Text{ZH: "争议手续费（未记账）", EN: "Fee of the dispute, not booked"}},
	{"fee_currency", text.Text{ZH: "手续费币种", EN: "Currency of the fee"}},
	{"complaint_no", text.Text{ZH: "投诉单号", EN: "Number of the complaint"}},
	{"close_reason", text.Text{ZH: "关闭原因", EN: "Close reason"}},
	{"payout_no", text.Text{ZH: "出款单号", EN: "Payout number"}},
	{"word", text.Text{ZH: "渠道状态", EN: "Supplier status"}},
	{"refund_no", text.Text{ZH: "退款单号", EN: "Refund number"}},
	{"first_trade_no", text.Text{ZH: "首次渠道流水号", EN: "First trade number"}},
	{"settled_order_id", text.Text{ZH: "已结清的订单", EN: "Settled order"}},
	{"type", text.EventType},
	{"subscriber", text.Text{ZH: "订阅方", EN: "Subscriber"}},
	{"attempts", text.Text{ZH: "尝试次数", EN: "Attempts"}},
	{"last_class", text.Text{ZH: "最后结果", EN: "Last outcome"}},
	{"last_error", text.Text{ZH: "最后错误", EN: "Last error"}},
	{"order_no", text.Text{ZH: "订单", EN: "Order"}},
	{"tries", text.Text{ZH: "查单次数", EN: "Queries"}},
	{"answer", text.Text{ZH: "渠道结果", EN: "Supplier's answer"}},
	{"supplier", text.Text{ZH: "渠道", EN: "Supplier"}},
	{"trade_no", text.Text{ZH: "渠道流水号", EN: "Trade number"}},
	{"call", text.Text{ZH: "来源：查单", EN: "Source: call"}},
}
