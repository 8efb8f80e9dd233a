package views

import (
	"strconv"

	"backstop/internal/compensation/batch"

	"github.com/a-h/templ"
)

// PlanData is what the page of a plan shows.
type PlanData struct {
	*batch.Plan
	Key   string // of the form
	Typed string // the amount that has to be typed; "" = none
	Mine  bool   // only who made it may run it
}

// runnable says whether the form is there: before the run, or after an
// interruption of it.
func (d PlanData) runnable(p *Page) bool {
	return d.Mine && d.Shown.Count(batch.Send) > 0 && (d.State == batch.Running || d.State == batch.Planned && p.Now.UnixMicro() < d.ExpiresAt)
}

var planStates = map[string]state{
	batch.Planned: {"info", "flask-conical", tPlanned},
	batch.Running: {"comp", "send", tPlanRunning},
	batch.Done:    {"ok", "check", tPlanDone},
	batch.Stopped: {"bad", "triangle-alert", tPlanStopped},
}

var planOutcomes = map[batch.Outcome]state{
	batch.Send:    {"ok", "send", tWillSend},
	batch.Final:   {"idle", "ban", tSkipFinal},
	batch.Blocked: {"warn", "hourglass", tSkipBlocked},
}

func planRun(d PlanData) templ.SafeURL {
	return templ.URL("/notifications/plans/" + strconv.FormatInt(d.ID, 10) + "/run")
}
