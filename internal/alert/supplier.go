package alert

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
)

// Supplier is the current state of a supplier's breaker, and what waits for the supplier.
type Supplier struct {
	Failures int64 // in a row
	Since    int64 // Unix µs
	ProbeAt  int64 // when one call goes out as a probe
	Closed   bool  // it answers again
	// Orders counts the orders that wait for a result from it; More = there are more than were
	// counted.
	Orders int64
	More   bool
	Sums   money.Totals
}

// supplierLine says since when a supplier is unreachable, or that it is reachable again, and
// which orders wait for it.
func (s Style) supplierLine(a Alert) string {
	link := strings.TrimSuffix(s.Console, "/") + "/orders?awaits=" + url.QueryEscape(a.Subject)
	x := s.suppliers[a.Subject]
	if x == nil {
		return fmt.Sprintf(tHappened.In(s.Language), a.Subject, a.Count) + s.sums(a.Sums) + tColon.In(s.Language) + link
	}
	clock := func(us int64) string { return time.UnixMicro(us).In(s.Zone).Format("15:04:05") }
	what, do := fmt.Sprintf(tUnreachable.In(s.Language), a.Subject, clock(x.Since), x.Failures), tUnreachableDo
	switch {
	case a.Rule == SupplierReachable && x.Closed:
		what, do = fmt.Sprintf(tReachable.In(s.Language), a.Subject), tAwaited
	case x.Closed:
		what, do = what+tGap.In(s.Language)+tOpenedClosed.In(s.Language), tAwaited
	case x.ProbeAt > 0:
		what += tGap.In(s.Language) + fmt.Sprintf(tUnreachableProbe.In(s.Language), clock(x.ProbeAt))
	}
	waiting := tAwaitedNone.In(s.Language)
	if x.Orders > 0 {
		more := ""
		if x.More {
			more = "+"
		}
		waiting = fmt.Sprintf(tAwaitedBy.In(s.Language), x.Orders, more, s.sums(x.Sums))
	}
	return what + tGap.In(s.Language) + waiting + tGap.In(s.Language) + fmt.Sprintf(do.In(s.Language), link)
}

// sums formats amounts in brackets; "" = none.
func (s Style) sums(t money.Totals) string {
	if len(t) == 0 {
		return ""
	}
	return fmt.Sprintf(tAmounts.In(s.Language), strings.Join(t.List(), tComma.In(s.Language)))
}

var (
	tUnreachable = text.Text{
		ZH: "渠道 %s 自 %s 起无法访问：连续失败 %d 次。查单、关单暂停，回调照常处理。",
		EN: "%s has been unreachable since %s: %d calls failed in a row. Queries and closes wait; callbacks are processed as usual.",
	}
	tUnreachableProbe = text.Text{ZH: "%s 自动探测。", EN: "One call is made as a probe at %s."}
	tUnreachableDo    = text.Text{
		ZH: "请查看渠道公告和调用密钥、出口网络。订单：%s",
		EN: "Check the supplier's status page, the API keys and this network's outbound connection. Orders: %s",
	}
	tReachable   = text.Text{ZH: "渠道 %s 已恢复，到期的查单、关单继续。", EN: "%s is reachable again; due queries and closes resume."}
	tAwaited     = text.Text{ZH: "订单：%s", EN: "Orders: %s"}
	tAwaitedBy   = text.Text{ZH: "等待支付结果的订单 %d%s 笔%s。", EN: "%d%s orders wait for a result%s."}
	tAwaitedNone = text.Text{ZH: "目前没有订单在等待支付结果。", EN: "No orders are waiting for a result."}
)
