package sweep

import (
	"context"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// RunAct is the audit name of starting a sweep.
const RunAct = "sweep.run"

// ActObject is the object name of sweeps in the audit, Next the id of the one being started.
const (
	ActObject = "sweep"
	Next      = "next"
)

// Params are the parameters of RunAct.
type Params struct {
	Days *int64 `json:"days" min:"1" max:"90"` // how far it looks back; nil = as configured
}

// sweepDetail holds the id of the sweep in the audit.
const sweepDetail = "sweep"

// Acts are the dependencies of the act.
type Acts struct {
	DB   *db.DB
	Days int // how far a sweep looks back
	// Nudge wakes a node to continue the sweep. It must not block.
	Nudge func()
}

// Kinds returns the act that starts a sweep now. Errors: ErrRunning.
func (a Acts) Kinds() []act.Kind {
	return []act.Kind{{
		Name: RunAct, Object: ActObject, Permission: access.RunSweeps, Scope: access.Compensate,
		Params: act.ParamsOf[Params](),

		Load: func(context.Context, bun.IDB, []act.Ref) ([]act.Subject, error) {
			return []act.Subject{{ID: Next}}, nil
		},
		Do: func(ctx context.Context, tx db.Tx, in act.Input, _ []act.Subject) ([]act.Outcome, error) {
			days := int64(a.Days)
			if given := in.Params.(Params).Days; given != nil {
				days = *given
			}
			s, err := Begin(ctx, tx, a.DB, Request{Days: int(days), By: in.By.Name, Reason: in.Reason})
			if err != nil {
				return nil, err
			}
			tx.OnEnd(func(err error) {
				if err == nil && a.Nudge != nil {
					a.Nudge()
				}
			})
			return []act.Outcome{{Details: Details(s, int(days))}}, nil
		},
	}}
}

// Details returns what the audit records about a started sweep.
func Details(s *Sweep, days int) map[string]any {
	return map[string]any{sweepDetail: strconv.FormatInt(s.ID, 10), "days": days}
}

// Begun returns the id of the sweep that an act started.
func Begun(out act.Outcome) string {
	id, _ := out.Details[sweepDetail].(string)
	return id
}
