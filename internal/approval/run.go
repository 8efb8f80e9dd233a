package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/textlimit"
	"backstop/internal/suppliercall"
)

// answerLife is the maximum age of the supplier's answer when it is acted on.
const answerLife = time.Minute

// maxError bounds the stored reason of a failure, in bytes.
const maxError = 500

// failure is an error of an action that makes the decision fail.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// carryOut runs the effect, in the transaction of the decision. by is who decided it. Errors:
// *failure.
func (d *Desk) carryOut(ctx context.Context, tx db.Tx, c verdictState, a *Approval, by act.Actor, s act.Subject) error {
	if err := d.begin(ctx, tx, a); err != nil {
		return err
	}
	if err := d.fresh(ctx, tx, c.live); err != nil {
		return err
	}
	outs, err := c.action.Do(ctx, tx, act.Input{By: by, Reason: a.Reason, Params: c.params, Proposed: a.proposed()}, []act.Subject{s})
	if err == nil {
		err = outs[0].Err
	}
	if err != nil {
		return asFailure(err)
	}
	err = d.done(ctx, tx, a, outs[0].Details, by)
	failpoint.Hit("act_before_commit")
	return err
}

// begin writes that an approval is being carried out.
func (d *Desk) begin(ctx context.Context, tx db.Tx, a *Approval) error {
	if a.State == Waiting {
		if err := d.move(ctx, tx, a, Approved, "checker", "checker_reason", "unverified", "decided_at"); err != nil {
			return err
		}
		failpoint.Hit("approved_before_run")
	}
	now := d.o.DB.Now()
	a.StartedAt, a.DoneAt, a.Error, a.Tries = &now, nil, "", a.Tries+1
	err := d.move(ctx, tx, a, Executing, "unverified", "started_at", "done_at", "error", "tries")
	if db.IsUnique(err) { // it failed before, and another proposal is open by now
		return ErrProposed
	}
	return err
}

// done writes that an approval has taken effect.
func (d *Desk) done(ctx context.Context, tx db.Tx, a *Approval, result map[string]any, by act.Actor) error {
	if result != nil {
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("write the result of approval %s: %w", a.No(), err)
		}
		a.Result = string(text)
	}
	now := d.o.DB.Now()
	a.DoneAt = &now
	if err := d.move(ctx, tx, a, Done, "done_at", "result"); err != nil {
		return err
	}
	return d.writeAudit(ctx, tx, a, "done", by, "", nil)
}

// fresh checks that the supplier's answer is stored and recent: the decision rests on it.
// Errors: *LiveError.
func (d *Desk) fresh(ctx context.Context, tx db.Tx, live *act.Live) error {
	if live == nil || !live.Verified() {
		return nil
	}
	var at int64
	err := tx.NewRaw("SELECT started_at FROM supplier_calls WHERE id = ?", live.Call).Scan(ctx, &at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read the supplier's answer: %w", err)
	}
	if at < d.o.DB.Now()-answerLife.Microseconds() {
		return &LiveError{act.NoAnswer}
	}
	return nil
}

// asFailure marks errors of an action that mean that it cannot be done. Others pass through:
// those of the database, lost races, and what shadow mode refuses.
func asFailure(err error) error {
	_, live := errors.AsType[*LiveError](err)
	if live || db.IsAnswer(err) || db.IsConflict(err) || db.IsUnavailable(err) {
		return err
	}
	for _, passing := range []error{
		act.ErrChanged, db.ErrBusy, db.ErrCommitUnknown, sql.ErrConnDone, sql.ErrTxDone, context.Canceled,
		context.DeadlineExceeded, suppliercall.ErrShadow,
	} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return &failure{err}
}

// fail records that a decision could not be carried out; its effect was rolled back.
func (d *Desk) fail(ctx context.Context, c verdictState, cause error) (a *Approval, err error) {
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var again bool
		if a, again, err = d.lock(ctx, tx, c); err != nil || again {
			return err
		}
		d.sign(c, a)
		if err := d.writeAudit(ctx, tx, a, c.step(), c.By, c.Reason, c.record(a)); err != nil {
			return err
		}
		if err := d.begin(ctx, tx, a); err != nil {
			return err
		}
		if err := d.failed(ctx, tx, c.action, a, cause.Error(), c.By, c.from == Waiting); err != nil {
			return err
		}
		return act.SaveKey(ctx, tx, c.Key)
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// failed ends an approval that could not be carried out. held = the object is marked for it.
func (d *Desk) failed(ctx context.Context, tx db.Tx, action decision, a *Approval, cause string, by act.Actor, held bool) error {
	if held {
		if err := d.free(ctx, tx, action, a); err != nil {
			return err
		}
	}
	now := d.o.DB.Now()
	a.DoneAt, a.Error = &now, textlimit.Clip(cause, maxError)
	if err := d.move(ctx, tx, a, Failed, "done_at", "error", "released_version"); err != nil {
		return err
	}
	return d.writeAudit(ctx, tx, a, "fail", by, "", map[string]any{"error": a.Error})
}
