package alert

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
)

// Opened is what is known of a breaker that has opened, as it is now.
type Opened struct {
	Merchant string // code
	Name     string
	Failures int64 // in a row
	// ByHand is who opened it, and Reason why; empty = it opened by itself.
	ByHand, Reason string
	Since          int64 // Unix µs
	ProbeAt        int64 // when it goes on by itself; 0 = somebody has to close it
	Closed         bool  // it has closed since
	Waiting        []Waits
	More           bool // more waits than was counted
}

// Waits is what waits for a merchant in one currency; "" = it is about no money.
type Waits struct {
	Currency string
	Count    int64
	Minor    int64
}

// maxReason bounds what a message repeats of what somebody wrote, in bytes.
const maxReason = 200

// known reads what there is to say about the breakers among the alerts. What cannot be
// read is counted in a line, as other events are: the message goes out all the same.
func (s Style) known(ctx context.Context, rule Rule, alerts []Alert) Style {
	s.opened = map[string]*Opened{}
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

// breakerLine says of a breaker what happened, for how long, what waits and what to do.
func (s Style) breakerLine(o *Opened) string {
	clock := func(us int64) string { return time.UnixMicro(us).In(s.Zone).Format("15:04:05") }
	name := o.Merchant
	if o.Name != "" && o.Name != o.Merchant {
		name = o.Name + " (" + o.Merchant + ")"
	}
	what, next, do := fmt.Sprintf(s.say(wordOpenedFailures), name, clock(o.Since), o.Failures), s.say(wordOpenedHand), s.say(wordOpenedDo)
	if o.ByHand != "" {
		what = fmt.Sprintf(s.say(wordOpenedByHand), name, clock(o.Since), o.ByHand, textlimit.Clip(strings.Join(strings.Fields(o.Reason), " "), maxReason))
	}
	switch {
	case o.Closed:
		next, do = s.say(wordOpenedClosed), s.say(wordOpenedLook)
	case o.ProbeAt > 0:
		next = fmt.Sprintf(s.say(wordOpenedProbe), (time.Duration(o.ProbeAt-o.Since) * time.Microsecond).Round(time.Second), clock(o.ProbeAt))
	}
	link := strings.TrimSuffix(s.Console, "/") + "/merchants/" + url.PathEscape(o.Merchant)
	return what + s.say(wordGap) + next + s.say(wordGap) + s.waiting(o) + s.say(wordGap) + fmt.Sprintf(do, link)
}

// waiting counts what waits, and its money by currency.
func (s Style) waiting(o *Opened) string {
	var n int64
	var sums []string
	for _, w := range o.Waiting {
		n += w.Count
		if w.Currency != "" {
			sums = append(sums, fmt.Sprintf(s.say(wordWaitingSum), money.Format(w.Minor, w.Currency), w.Currency, w.Count))
		}
	}
	if n == 0 {
		return s.say(wordWaitingNone)
	}
	more := ""
	if o.More {
		more = "+"
	}
	text := fmt.Sprintf(s.say(wordWaiting), n, more)
	if len(sums) > 0 {
		text += s.say(wordColon) + strings.Join(sums, s.say(wordComma))
	}
	return text + s.say(wordStop)
}

var (
	wordOpenedFailures = word{"商户 %s 于 %s 熔断：连续失败 %d 次。", "%s: the breaker opened at %s after %d failures in a row."}
	wordOpenedByHand   = word{"商户 %s 于 %s 被 %s 手动熔断：%s。", "%s: the breaker was opened at %s by %s: %s."}
	wordOpenedProbe    = word{"熔断 %s，%s 自动探测。", "It stays open for %s; one notification goes as a probe at %s."}
	wordOpenedHand     = word{"不会自动恢复，需要有人解除熔断。", "It stays open until somebody closes it."}
	wordOpenedClosed   = word{"之后已恢复。", "It has closed since."}
	wordOpenedDo       = word{"请联系商户检查通知地址；确认恢复后可立即探测或解除熔断：%s", "Ask the merchant to look at its endpoint; once it works, probe or close the breaker: %s"}
	wordOpenedLook     = word{"详情：%s", "See %s"}
	wordWaiting        = word{"挂起通知 %d%s 条", "%d%s notifications wait"}
	wordWaitingSum     = word{"%s %s（%d 条）", "%s %s (%d)"}
	wordWaitingNone    = word{"目前没有挂起的通知。", "No notification waits."}
	wordColon          = word{"：", ": "}
	wordComma          = word{"、", ", "}
	wordStop           = word{"。", "."}
	wordGap            = word{"", " "}
)
