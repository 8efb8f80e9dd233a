package resend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/compensation"

	"github.com/uptrace/bun"
)

// AlertAct is the audit name of sending an alert message again.
const AlertAct = "alert.resend"

// ErrNotFailed means that an alert message was sent, or waits for its next attempt.
var ErrNotFailed = errors.New("this message was sent or waits for its next attempt: only one that was given up can be sent again")

// Acts returns the act of sending an alert message again that its target did not take: the
// message of Ref.Row. It opens a compensation that is due at once. Errors: ErrNotFailed.
func Acts(d *db.DB, s compensation.Schedule) []act.Kind {
	return []act.Kind{{
		Name: AlertAct, Object: compensation.OfAlertMessage, Permission: access.TestAlerts,
		Load: func(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			var subjects []act.Subject
			for _, r := range refs {
				m, err := alert.MessageByID(ctx, q, r.Row)
				if err != nil {
					return nil, err
				}
				if m != nil {
					subjects = append(subjects, act.Subject{Row: m.ID, ID: strconv.FormatInt(m.ID, 10), Value: m})
				}
			}
			return subjects, nil
		},
		Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			w := tx.Writes()
			for i, x := range subjects {
				m := x.Value.(*alert.Message)
				if m.Status != alert.Failed {
					return nil, ErrNotFailed
				}
				s.OpenDue(w, d, &compensation.Item{
					Kind: compensation.Resend, Cause: compensation.MerchantUnreachable, SubjectKind: compensation.OfAlertMessage,
					SubjectID: m.ID,
					MadeBy:    in.By.Name, Payload: json.RawMessage(fmt.Sprintf(`{"message":%d}`, m.ID)),
				})
				outs[i].Details = map[string]any{"target": m.Target, "title": m.Title}
			}
			return outs, w.Exec(ctx)
		},
	}}
}
