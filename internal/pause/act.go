package pause

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Audit names of the acts, and of their object.
const (
	PauseAct  = "queue.pause"
	ResumeAct = "queue.resume"
	ActObject = "queue"
)

// Acts returns the acts that pause and resume the work named by Ref.ID. Errors: ErrAlready.
func (p *Pauses) Acts() []act.Kind {
	kind := func(name string, do func(context.Context, db.Tx, act.Input, string) (act.Outcome, error)) act.Kind {
		return act.Kind{
			Name: name, Object: ActObject, Permission: access.ControlQueues, Load: load,
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				outs := make([]act.Outcome, len(subjects))
				for i, s := range subjects {
					var err error
					if outs[i], err = do(ctx, tx, in, s.ID); err != nil {
						return nil, err
					}
				}
				return outs, nil
			},
		}
	}
	return []act.Kind{kind(PauseAct, p.pause), kind(ResumeAct, p.resume)}
}

func load(_ context.Context, _ bun.IDB, refs []act.Ref) (subjects []act.Subject, _ error) {
	for _, r := range refs {
		if slices.Contains(Names, r.ID) {
			subjects = append(subjects, act.Subject{ID: r.ID})
		}
	}
	return subjects, nil
}

func (p *Pauses) pause(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
	row := &Pause{Name: name, By: in.By.Name, Reason: in.Reason, At: p.db.Now()}
	res, err := tx.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx)
	if err != nil {
		return act.Outcome{}, fmt.Errorf("pause a queue: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return act.Outcome{}, ErrAlready
	}
	p.changeAtEnd(tx, name, row)
	return act.Outcome{}, nil
}

func (p *Pauses) resume(ctx context.Context, tx db.Tx, _ act.Input, name string) (act.Outcome, error) {
	var was []Pause
	if err := tx.NewRaw("DELETE FROM paused_queues WHERE name = ? RETURNING *", name).Scan(ctx, &was); err != nil {
		return act.Outcome{}, fmt.Errorf("resume a queue: %w", err)
	}
	if len(was) == 0 {
		return act.Outcome{}, ErrAlready
	}
	p.changeAtEnd(tx, name, nil)
	return act.Outcome{Details: map[string]any{
		"paused_by": was[0].By, "paused_at": time.UnixMicro(was[0].At).UTC().Format(time.RFC3339),
	}}, nil
}

func (p *Pauses) changeAtEnd(tx db.Tx, name string, row *Pause) {
	tx.OnEnd(func(err error) {
		if err == nil {
			p.change(name, row)
		}
	})
}
