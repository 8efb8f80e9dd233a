package views

import (
	"strconv"

	"backstop/internal/compensation/batch"
	"backstop/internal/report"

	"github.com/a-h/templ"
)

// PlanData is what the page of a plan shows.
type PlanData struct {
	*batch.Plan
	Now   batch.Tally  // what came of what was taken up
	Key   string       // of the form
	Typed []report.Sum // the amounts that have to be typed
	Mine  bool         // only who made it may run it
}

// TypedName is the field in which an amount is typed.
func TypedName(s report.Sum) string { return "amount_" + s.Currency }

// left is how many notifications a run would take up.
func (d PlanData) left() int64 { return int64(len(d.IDs)) - d.Next }

// begun says whether the plan was run.
func (d PlanData) begun() bool { return d.State != batch.Planned }

// resultText counts what came of a plan by now.
func (d PlanData) resultText(p *Page) string {
	return p.T(tPlanResult, count(d.Now.Count(batch.Notified)), count(d.Now.Count(batch.Refused)), count(d.Now.Count(batch.Waiting)))
}

// resultKind is good only where all were notified.
func (d PlanData) resultKind() string {
	if d.Now.Count(batch.Refused, batch.Waiting) > 0 {
		return "warn"
	}
	return "ok"
}

// runnable says whether the form is there: before the run, or after an
// interruption of it.
func (d PlanData) runnable(p *Page) bool {
	return d.Mine && len(d.IDs) > 0 && (d.State == batch.Running || d.State == batch.Planned && p.Now.UnixMicro() < d.ExpiresAt)
}

var planStates = map[string]state{
	batch.Planned: {"info", "flask-conical", tPlanned},
	batch.Running: {"comp", "send", tPlanRunning},
	batch.Done:    {"ok", "check", tPlanDone},
	batch.Stopped: {"bad", "triangle-alert", tPlanStopped},
}

var planOutcomes = map[batch.Outcome]state{
	batch.Send:    {"ok", "send", tWillSend},
	batch.Waits:   {"warn", "zap-off", tWaitsBreaker},
	batch.Final:   {"idle", "ban", tSkipFinal},
	batch.Blocked: {"warn", "hourglass", tSkipBlocked},

	batch.Notified: {"ok", "check", tPlanNotified},
	batch.Refused:  {"bad", "x", tPlanRefused},
	batch.Waiting:  {"warn", "hourglass", tPlanWaiting},
}

func planRun(d PlanData) templ.SafeURL {
	return templ.URL("/notifications/plans/" + strconv.FormatInt(d.ID, 10) + "/run")
}
