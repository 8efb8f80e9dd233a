package pages

import (
	"strconv"

	"backstop/internal/act"
	"backstop/internal/base/text"
	"backstop/internal/bulk"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// PlanData is what the page of a plan shows.
type PlanData struct {
	*bulk.Plan
	Now  bulk.Tally // what came of what was taken up
	Key  string     // of the form
	Mine bool       // only who made it may run it
}

// typedName is the field in which an amount is typed.
func typedName(s report.Sum) string { return bulk.AmountField + s.Currency }

// left is how many notifications a run would take up.
func (d PlanData) left() int64 { return int64(len(d.IDs)) - d.Next }

// begun says whether the plan was run.
func (d PlanData) begun() bool { return d.State != bulk.Planned }

// resultText counts what came of a plan by now.
func (d PlanData) resultText(p *ui.Page) string {
	return p.T(tPlanResult, ui.Count(d.Now.Count(notify.ResultNotified)), ui.Count(d.Now.Count(notify.ResultRefused)), ui.Count(d.Now.Count(notify.ResultWaiting)))
}

// resultKind is good only where all were notified.
func (d PlanData) resultKind() string {
	if d.Now.Count(notify.ResultRefused, notify.ResultWaiting) > 0 {
		return "warn"
	}
	return "ok"
}

// runnable says whether the form is there: before the run, or after an
// interruption of it.
func (d PlanData) runnable(p *ui.Page) bool {
	return d.Mine && len(d.IDs) > 0 && (d.State == bulk.Running || d.State == bulk.Planned && p.Now.UnixMicro() < d.ExpiresAt)
}

var planStates = map[string]ui.State{
	bulk.Planned: {Kind: "info", Icon: "flask-conical", Label: text.Text{ZH: "待执行", EN: "Planned"}},
	bulk.Running: {Kind: "comp", Icon: "send", Label: text.Text{ZH: "进行中", EN: "Running"}},
	bulk.Done:    {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已完成", EN: "Done"}},
	bulk.Stopped: {Kind: "bad", Icon: "triangle-alert", Label: text.Text{ZH: "已停止", EN: "Stopped"}},
}

// prospects are what a plan does with notifications, as they are shown.
func prospects() (all []string) {
	for _, p := range act.Prospects {
		all = append(all, string(p))
	}
	return all
}

// planEnds are what a plan does with a notification, and what came of it.
var planEnds = map[string]ui.State{
	string(act.Will):    {Kind: "ok", Icon: "send", Label: text.Text{ZH: "会发送", EN: "Will send"}},
	string(act.Waits):   {Kind: "warn", Icon: "zap-off", Label: text.Text{ZH: "熔断挂起", EN: "Waits for the breaker"}},
	string(act.Final):   {Kind: "idle", Icon: "ban", Label: text.Text{ZH: "跳过：已有结果", EN: "Skip: final"}},
	string(act.Blocked): {Kind: "warn", Icon: "hourglass", Label: text.Text{ZH: "跳过：正在进行", EN: "Skip: on its way"}},

	notify.ResultNotified: {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已送达", EN: "Notified"}},
	notify.ResultRefused:  {Kind: "bad", Icon: "x", Label: text.Text{ZH: "未成功", EN: "Refused"}},
	notify.ResultWaiting:  {Kind: "warn", Icon: "hourglass", Label: text.Text{ZH: "仍在等待", EN: "Still waiting"}},
}

func planRun(d PlanData) templ.SafeURL {
	return templ.URL("/notifications/plans/" + strconv.FormatInt(d.ID, 10) + "/run")
}

// Texts of this page.
var (
	tPlanCount      = text.Text{ZH: "条数", EN: "Count"}
	tPlanWaits      = text.Text{ZH: "其中 %s 条的商户已熔断：现在不会发出，熔断恢复后自动发出。", EN: "%s of them wait for a breaker: they do not go out now, but when it closes."}
	tPlanResultHead = text.Text{ZH: "执行结果，截至", EN: "Result as of"}
	tPlanResult     = text.Text{ZH: "全部已处理：%s 条已送达，%s 条未成功，%s 条仍在等待。", EN: "All were taken up: %s notified, %s refused, %s still waiting."}
	tPlanTitle      = text.Text{ZH: "批量补单", EN: "Send notifications again"}
	tDryRun         = text.Text{ZH: "预检结果（不发送）", EN: "Dry run"}
	tFrozenFilter   = text.Text{ZH: "冻结时的列表", EN: "The list that was frozen"}
	tNothingSent    = text.Text{ZH: "还没有发送任何通知。", EN: "Nothing was sent yet."}
	tTakenUp        = text.Text{ZH: "已处理 %s / %s", EN: "%s of %s taken up"}
	tPlanUntil      = text.Text{ZH: "有效至", EN: "good until"}
	tPlanDrifted    = text.Text{ZH: "金额与预检相差超过 1%，已停止。已发送的保留，其余没有发送。请重新预检。", EN: "The amount differs from the dry run by more than 1 %, so it stopped. What was sent stays sent, the rest was not. Make a new dry run."}
	tPlanEmpty      = text.Text{ZH: "没有可以补发的通知。", EN: "There is nothing to send."}
	tPlanNotYours   = text.Text{ZH: "只有 %s 能执行这个计划。", EN: "Only %s may run this plan."}
	tPlanExpired    = text.Text{ZH: "这个预检已过期，请重新做一次。", EN: "This dry run is too old: make a new one."}
	tPlanGoOn       = text.Text{ZH: "执行被中断，可以继续：已发送的不会再发。", EN: "The run was interrupted and can go on: nothing is sent twice."}
	tSendN          = text.Text{ZH: "补发 %s 条", EN: "Send %s again"}
)
