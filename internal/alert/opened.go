package alert

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// Opened is the current state of a breaker that has opened.
type Opened struct {
	Merchant string // code
	Name     string
	Failures int64 // in a row
	// ByHand is the operator who opened it, Reason the reason given; empty = it opened
	// automatically.
	ByHand, Reason string
	Since          int64 // Unix µs
	ProbeAt        int64 // when it probes; 0 = an operator has to close it
	Closed         bool  // it has closed since
	Waiting        []Waits
	More           bool // there are more waiting notifications than were counted
}

// Waits counts the notifications waiting for a merchant in one currency; "" = without money.
type Waits struct {
	Currency string
	Count    int64
	Minor    int64
}

// maxReason bounds an operator's reason in a message, in bytes.
const maxReason = 200

// known reads the breakers among the alerts. For those that cannot be read, the message uses
// the line of other events.
func (s Style) known(ctx context.Context, rule Rule, alerts []Alert) Style {
	s.opened, s.suppliers = map[string]*Opened{}, map[string]*Supplier{}
	if (rule.Name == SupplierUnreachable || rule.Name == SupplierReachable) && s.Supplier != nil {
		for _, a := range alerts[:min(len(alerts), maxLines)] {
			if x, err := s.Supplier(ctx, a.Subject); err == nil && x != nil {
				s.suppliers[a.Subject] = x
			}
		}
	}
	if rule.Name != BreakerOpened || s.Opened == nil {
		return s
	}
	for _, a := range alerts[:min(len(alerts), maxLines)] {
		if o, err := s.Opened(ctx, a.Subject); err == nil && o != nil {
			s.opened[a.Subject] = o
		}
	}
	return s
}

// breakerLine describes what happened to a breaker, how long it stays open, what waits and what
// to do.
func (s Style) breakerLine(o *Opened) string {
	clock := func(us int64) string { return time.UnixMicro(us).In(s.Zone).Format("15:04:05") }
	name := o.Merchant
	if o.Name != "" && o.Name != o.Merchant {
		name = o.Name + " (" + o.Merchant + ")"
	}
	what, next, do := fmt.Sprintf(tOpenedFailures.In(s.Language), name, clock(o.Since), o.Failures), tOpenedHand.In(s.Language),
		tOpenedDo.In(s.Language)
	if o.ByHand != "" {
		what = fmt.Sprintf(tOpenedByHand.In(s.Language), name, clock(o.Since), o.ByHand,
			textlimit.Clip(strings.Join(strings.Fields(o.Reason), " "), maxReason))
	}
	switch {
	case o.Closed:
		next, do = tOpenedClosed.In(s.Language), tOpenedLook.In(s.Language)
	case o.ProbeAt > 0:
		next = fmt.Sprintf(tOpenedProbe.In(s.Language), (time.Duration(o.ProbeAt-o.Since) * time.Microsecond).Round(time.Second),
			clock(o.ProbeAt))
	}
	link := strings.TrimSuffix(s.Console, "/") + "/merchants/" + url.PathEscape(o.Merchant)
	return what + tGap.In(s.Language) + next + tGap.In(s.Language) + s.waiting(o) + tGap.In(s.Language) + fmt.Sprintf(do, link)
}

// waiting describes how many notifications wait, with their money by currency.
func (s Style) waiting(o *Opened) string {
	var n int64
	var sums []string
	for _, w := range o.Waiting {
		n += w.Count
		if w.Currency != "" {
			sums = append(sums, fmt.Sprintf(tWaitingSum.In(s.Language), money.Format(w.Minor, w.Currency), w.Currency, w.Count))
		}
	}
	if n == 0 {
		return tWaitingNone.In(s.Language)
	}
	more := ""
	if o.More {
		more = "+"
	}
	line := fmt.Sprintf(tWaiting.In(s.Language), n, more)
	if len(sums) > 0 {
		line += tColon.In(s.Language) + strings.Join(sums, tComma.In(s.Language))
	}
	return line + tStop.In(s.Language)
}

var (
	tOpenedFailures = text.Text{ZH: "商户 %s 于 %s 熔断：连续失败 %d 次。", EN: "%s: the breaker opened at %s after %d failures in a row."}
	tOpenedByHand   = text.Text{ZH: "商户 %s 于 %s 被 %s 手动熔断：%s。", EN: "%s: the breaker was opened at %s by %s: %s."}
	tOpenedProbe    = text.Text{ZH: "熔断 %s，%s 自动探测。", EN: "It stays open for %s; one notification is sent as a probe at %s."}
	tOpenedHand     = text.Text{ZH: "不会自动恢复，需要有人解除熔断。", EN: "It stays open until an operator closes it."}
	tOpenedClosed   = text.Text{ZH: "之后已恢复。", EN: "It has closed since."}
	tOpenedDo       = text.Text{
		ZH: "请联系商户检查通知地址；确认恢复后可立即探测或解除熔断：%s",
		EN: "Ask the merchant to check its endpoint. Once it works, probe or close the breaker: %s",
	}
	tOpenedLook  = text.Text{ZH: "详情：%s", EN: "See %s"}
	tWaiting     = text.Text{ZH: "挂起通知 %d%s 条", EN: "%d%s notifications wait"}
	tWaitingSum  = text.Text{ZH: "%s %s（%d 条）", EN: "%s %s (%d)"}
	tWaitingNone = text.Text{ZH: "目前没有挂起的通知。", EN: "No notifications are waiting."}
	tColon       = text.Text{ZH: "：", EN: ": "}
	tComma       = text.Text{ZH: "、", EN: ", "}
	tStop        = text.Text{ZH: "。", EN: "."}
	tGap         = text.Text{ZH: "", EN: " "}
)
