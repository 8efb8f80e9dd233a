package wording

import (
	"backstop/internal/base/text"
	"backstop/views/ui"
)

// EventType names a type of events of which merchants are notified.
func EventType(name string) text.Text { return ui.TextFor(eventTypes, name) }

var eventTypes = map[string]text.Text{
	"order.paid":       {ZH: "支付成功", EN: "Order paid"},
	"order.failed":     {ZH: "支付失败", EN: "Order failed"},
	"order.closed":     {ZH: "订单关闭", EN: "Order closed"},
	"refund.succeeded": {ZH: "退款成功", EN: "Refund made"},
	"refund.failed":    {ZH: "退款失败", EN: "Refund failed"},
	"payout.succeeded": {ZH: "出款成功", EN: "Payout made"},
	"payout.failed":    {ZH: "出款失败", EN: "Payout failed"},
	"payout.returned":  {ZH: "出款被退回", EN: "Payout returned"},
	"dispute.opened":   {ZH: "发生争议", EN: "Dispute opened"},
	"dispute.won":      {ZH: "争议胜诉", EN: "Dispute won"},
	"dispute.lost":     {ZH: "争议败诉", EN: "Dispute lost"},
}
