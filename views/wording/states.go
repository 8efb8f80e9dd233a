// Package wording puts into words what rows store: states, causes, outcomes, acts and decisions.
package wording

import (
	"cmp"
	"strconv"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/ui"
)

// MerchantName is a merchant's name; one that is gone has its number alone.
func MerchantName(name, code string, id int64) string {
	return cmp.Or(name, code, strconv.FormatInt(id, 10))
}

func BreakerCause(p *ui.Page, cause string, failures int64) string {
	w, ok := breakerCauses[cause]
	switch {
	case !ok:
		return cause
	case cause == breaker.InARow:
		return p.T(w, failures)
	}
	return p.T(w)
}

// breakerCauses are the words of why a breaker changed.
var breakerCauses = map[string]text.Text{
	breaker.InARow:      {ZH: "连续失败 %d 次", EN: "failures in a row: %d"},
	breaker.FailureRate: {ZH: "失败率过高", EN: "too many attempts failed"},
	breaker.ProbeDue:    {ZH: "放行一笔探测", EN: "a probe is sent"},
	breaker.ProbeTaken:  {ZH: "探测成功", EN: "the probe succeeded"},
	breaker.ProbeFailed: {ZH: "探测失败", EN: "the probe failed"},
	breaker.ByHand:      {ZH: "人工操作", EN: "by an operator"},
}

// MerchantHealth judges a merchant by its last hour, and by the present if it is slow.
func MerchantHealth(h console.MerchantHealth) ui.State {
	rate, ok := h.Rate()
	p95, _ := h.Took.Quantile(0.95)
	switch {
	case h.Breaker.Tripped():
		return ui.State{Kind: "bad", Icon: "zap-off", Label: text.BreakerOpen}
	case ok && rate < 0.5:
		return ui.State{Kind: "bad", Icon: "circle-x", Label: tFailing}
	case ok && rate < 0.95:
		return ui.State{Kind: "warn", Icon: "activity", Label: tDegraded}
	case h.Slow || p95.D > slowP95:
		return ui.State{Kind: "warn", Icon: "timer", Label: tSlow}
	case !ok:
		return ui.State{Kind: "idle", Icon: "clock", Label: text.Quiet}
	}
	return ui.State{Kind: "ok", Icon: "check", Label: text.Healthy}
}

// slowP95 is a bound of the histogram, so that it is passed exactly where the
// percentile is over it.
const slowP95 = 3 * time.Second

// AttemptState is how one attempt ended.
func AttemptState(a notify.Attempt) ui.State {
	if a.Class == notify.OK {
		return ui.State{Kind: "ok", Icon: "check", Label: text.ClassOK}
	}
	return ui.State{Kind: "bad", Icon: "x", Label: ui.ClassText(a.Class)}
}

// DeliveryState is the state of a notification, also of a parked one.
func DeliveryState(status notify.Status, parked bool) ui.State {
	if parked {
		return ui.StateOf(ui.NotifyStates, "parked")
	}
	return ui.StateOf(ui.DeliveryStates, string(status))
}

var BatchStates = map[string]ui.State{
	string(batch.Planned): {Kind: "info", Icon: "flask-conical", Label: text.Text{ZH: "待执行", EN: "Planned"}},
	string(batch.Waiting): {Kind: "warn", Icon: "users", Label: text.Text{ZH: "待复核", EN: "Waiting for approval"}},
	string(batch.Running): {Kind: "comp", Icon: "refresh-cw", Label: text.Text{ZH: "进行中", EN: "Running"}},
	string(batch.Paused):  {Kind: "warn", Icon: "pause", Label: text.Text{ZH: "已暂停", EN: "Paused"}},
	string(batch.Stopped): {Kind: "bad", Icon: "triangle-alert", Label: text.Text{ZH: "已停止", EN: "Stopped"}},
	string(batch.Done):    {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已完成", EN: "Done"}},
}

var MessageStates = map[string]ui.State{
	alert.Waiting: {Kind: "info", Icon: "clock", Label: text.Text{ZH: "待发送", EN: "Waiting"}},
	alert.Sent:    {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已送达", EN: "Sent"}},
	alert.Failed:  {Kind: "bad", Icon: "x", Label: text.Text{ZH: "已放弃", EN: "Given up"}},
}

var tDegraded = text.Text{ZH: "偏低", EN: "Degraded"}

var tFailing = text.Text{ZH: "失败多", EN: "Failing"}

var tSlow = text.Text{ZH: "慢", EN: "Slow"}
