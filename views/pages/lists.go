package pages

import (
	"net/url"

	"backstop/internal/base/text"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/a-h/templ"
)

// Choices are what a list's selects offer.
type Choices struct {
	Merchants []console.Named
	Suppliers []console.Named
}

func orderLink(no string) templ.SafeURL { return templ.URL("/orders/" + url.PathEscape(no)) }

// exceptionLink leads to the order's story, or to the exception itself where no
// order is behind it.
func exceptionLink(x compensation.Item) templ.SafeURL {
	if x.OrderID != 0 || x.OrderNo != "" && x.Kind != compensation.UnknownOrder {
		return orderLink(x.OrderNo)
	}
	return templ.URL("/exceptions?kind=" + x.Kind)
}

func passed(steps []supplier.Step) (n int) {
	for _, s := range steps {
		if s.OK {
			n++
		}
	}
	return n
}

// Values of selects, in the order of a thing's life.
var (
	eventTypes     = []string{"order.paid", "order.failed", "order.closed"}
	exceptionOrder = []string{compensation.Opened, compensation.Assigned, compensation.Resolved, compensation.Ignored} // those that people reach
	orderStatuses  = order.Statuses
)

// Texts of this page.
var (
	tAnyNo         = text.Text{ZH: "订单号或商户单号", EN: "Order or merchant's number"}
	tTold          = text.Text{ZH: "通知商户", EN: "Merchant told"}
	tWithRefused   = text.Text{ZH: "含被拒绝的", EN: "Refused ones too"}
	tSeen          = text.Text{ZH: "次数", EN: "Seen"}
	tNoOrders      = text.Text{ZH: "还没有订单", EN: "No orders yet"}
	tNoOrdersHow   = text.Text{ZH: "先用 backstop apply 声明供应商和商户，再让商户调用 POST /api/v1/orders；或运行 backstop serve --demo 看它动起来。", EN: "Declare suppliers and merchants with backstop apply, then let a merchant call POST /api/v1/orders; or run backstop serve --demo to see it alive."}
	tNoCallbacks   = text.Text{ZH: "还没有回调", EN: "No callbacks yet"}
	tNoCallbackHow = text.Text{ZH: "供应商的通知地址是 %s，末尾换成供应商代码。", EN: "Give suppliers the address %s with their code at its end."}
	tBarsCalls     = text.Text{ZH: "可信的供应商回调", EN: "Authentic callbacks of suppliers"}
)
