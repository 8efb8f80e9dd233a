package bulk

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// tries bounds the attempts of a step that conflicts with the dispatcher's transactions.
const tries = 3

// Step acts on the next subjects of a running plan in one transaction; more: there may be
// others. Two at once do not do the same step twice.
func (b *Plans) Step(ctx context.Context, id int64) (more bool, err error) {
	for range tries {
		p, err := b.Find(ctx, id)
		if err != nil || p.State != Running {
			return false, err
		}
		rest := p.IDs[min(int(p.Next), len(p.IDs)):]
		if len(rest) == 0 {
			return false, b.finish(ctx, p, Done)
		}
		now, err := b.load(ctx, b.db.Read, rest)
		if err != nil {
			return false, err
		}
		if p.drifted(now) {
			return false, b.finish(ctx, p, Stopped)
		}
		if err = b.step(ctx, p, rest[:min(len(rest), stepRows)]); !db.IsConflict(err) {
			return true, err
		}
	}
	return true, db.ErrBusy
}

// drifted reports whether the amount of what was taken up and of what is not final yet is
// not the one that was shown, in any currency. Subjects that go on by themselves
// meanwhile, as after a breaker has closed, change none.
func (p *Plan) drifted(rest []act.Subject) bool {
	all := Tally{"": p.Result.Sums(string(act.Will), string(act.Waits), string(act.Blocked))}
	for _, s := range rest {
		if s.Prospect != act.Final {
			all.add("", s)
		}
	}
	return drifted(p.Shown.Acts(), all.Sums(""))
}

// step acts on the next subjects as they are now; those that were deleted at the end of
// their retention are final.
func (b *Plans) step(ctx context.Context, p *Plan, todo []int64) error {
	result := p.Result.clone()
	return b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		found, err := b.load(ctx, tx, todo)
		if err != nil {
			return err
		}
		var subjects []act.Subject
		for _, s := range found {
			if s.Prospect.Acts() {
				subjects = append(subjects, s)
			} else {
				result.add(string(s.Prospect), s)
			}
		}
		for range len(todo) - len(found) {
			result.add(string(act.Final), act.Subject{})
		}
		if len(subjects) > 0 {
			if err := b.do(ctx, tx, p, subjects, result); err != nil {
				return err
			}
		}
		res, err := tx.NewRaw("UPDATE plans SET next = ?, done = ? WHERE id = ? AND next = ? AND state = ?",
			p.Next+int64(len(todo)), result, p.ID, p.Next, Running).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store a plan's progress: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(db.ErrStale, err)
		}
		return nil
	})
}

// do acts on subjects and adds up the outcomes.
func (b *Plans) do(ctx context.Context, tx db.Tx, p *Plan, subjects []act.Subject, result Tally) error {
	in := act.Input{By: act.Actor{Name: operator(p)}}
	if b.kind.Params != nil {
		var err error
		if in.Params, err = b.kind.Params(nil); err != nil {
			return err
		}
	}
	outs, err := b.kind.Do(ctx, tx, in, subjects)
	if err != nil {
		return err
	}
	for i, o := range outs {
		result.add(string(o.Prospect), subjects[i])
	}
	return nil
}

// finish ends a plan, once, and records its end in the audit.
func (b *Plans) finish(ctx context.Context, p *Plan, state string) error {
	return b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		res, err := tx.NewRaw("UPDATE plans SET state = ?, finished_at = ? WHERE id = ? AND state IN (?) AND next = ?", state, b.db.Now(), p.ID, bun.List(Moves.From(state)), p.Next).Exec(ctx)
		if err != nil {
			return fmt.Errorf("end a plan: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return b.audit.Write(ctx, tx, audit.Act{
			Actor: operator(p), Action: EndAct, Object: object, ObjectID: strconv.FormatInt(p.ID, 10),
			Params: map[string]any{"state": state, "notifications": p.Result.Planned(), "amounts": p.Result.Acts()},
		})
	})
}

// Results is the current results of the subjects that were taken up.
func (b *Plans) Results(ctx context.Context, p *Plan) (Tally, error) {
	all := Tally{}
	subjects, err := b.load(ctx, b.db.Read, p.IDs[:min(int(p.Next), len(p.IDs))])
	for _, s := range subjects {
		all.add(s.Result, s)
	}
	return all, err
}
