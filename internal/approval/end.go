package approval

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
)

// program is the actor that expires proposals.
const program = "backstop"

// Reject ends a proposal without effect. Errors: ErrPerson, act.ErrNotFound, ErrSelfApproval,
// *RoleError, ErrExpired, ErrEnded, *act.FieldError.
func (d *Desk) Reject(ctx context.Context, v Verdict) (*Approval, error) {
	reason, err := act.CheckReason(v.Reason)
	return d.end(ctx, v, Rejected, func(a *Approval, action decision, roles access.Roles) error {
		switch {
		case a.madeBy(v.By):
			return ErrSelfApproval
		case !d.has(roles, action.Second.Approve):
			return &RoleError{Permission: action.Second.Approve, Roles: d.o.Policy.RolesWith(action.Second.Approve)}
		}
		a.Checker, a.CheckerReason = &v.By.ID, reason
		return err
	})
}

// Withdraw ends a proposal by its maker. Errors: ErrPerson, act.ErrNotFound, ErrMaker,
// ErrExpired, ErrEnded.
func (d *Desk) Withdraw(ctx context.Context, v Verdict) (*Approval, error) {
	return d.end(ctx, v, Withdrawn, func(a *Approval, _ decision, _ access.Roles) error {
		if !a.madeBy(v.By) {
			return ErrMaker
		}
		return nil
	})
}

// mayEnd reports whether somebody of these roles may end a proposal.
type mayEnd func(a *Approval, action decision, roles access.Roles) error

// end ends a waiting proposal. A repeat gets the same answer.
func (d *Desk) end(ctx context.Context, v Verdict, to State, may mayEnd) (*Approval, error) {
	a, err := d.endOnce(ctx, v, to, may)
	return d.meanwhile(ctx, v, Waiting, a, err, func(now *Approval) bool { return now.endedBy(v.By, to) })
}

// endedBy reports whether this person has ended the proposal so.
func (a *Approval) endedBy(by act.Actor, to State) bool {
	return a.State == to && (to == Withdrawn && a.madeBy(by) || to == Rejected && a.checker() == by.ID)
}

func (d *Desk) endOnce(ctx context.Context, v Verdict, to State, may mayEnd) (*Approval, error) {
	a, action, err := d.find(ctx, v)
	if err != nil {
		return nil, err
	}
	var repeated bool
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		first, err := act.ClaimKey(ctx, tx, d.o.DB.Now(), v.Key)
		if err != nil {
			return err
		}
		held, err := d.o.Operators.Lock(ctx, tx, v.By.ID)
		if err != nil {
			return err
		}
		if a, err = scan(ctx, d.o.DB.ForUpdate(tx.NewSelect()), v.ID); err != nil {
			return err
		}
		by := held[v.By.ID]
		if by == nil {
			return &RoleError{Permission: action.Second.Approve, Roles: d.o.Policy.RolesWith(action.Second.Approve)}
		}
		repeated = !first || a.endedBy(v.By, to)
		if err := may(a, action, by.Roles); err != nil || repeated {
			return err
		}
		now := d.o.DB.Now()
		if err := a.late(Waiting, now); err != nil {
			return err
		}
		a.DecidedAt = &now
		if err := d.endFree(ctx, tx, action, a, to); err != nil {
			return err
		}
		step := map[State]string{Rejected: "reject", Withdrawn: "withdraw"}[to]
		if err := d.writeAudit(ctx, tx, a, step, v.By, v.Reason, nil); err != nil {
			return err
		}
		return act.SaveKey(ctx, tx, v.Key)
	})
	if err != nil {
		return nil, err
	}
	if repeated {
		return Find(ctx, d.o.DB, v.ID)
	}
	return a, nil
}

// endFree ends a waiting proposal and releases the object.
func (d *Desk) endFree(ctx context.Context, tx db.Tx, action decision, a *Approval, to State) error {
	if err := d.move(ctx, tx, a, to, "checker", "checker_reason", "decided_at"); err != nil {
		return err
	}
	return d.free(ctx, tx, action, a)
}

// expiredAtOnce bounds one run of Expire.
const expiredAtOnce = 200

// Expire ends the proposals that were not decided in time, by the database's clock, and returns
// how many.
func (d *Desk) Expire(ctx context.Context) (int, error) {
	var ids []int64
	err := d.o.DB.Read.NewRaw("SELECT id FROM approvals WHERE state = 'waiting' AND expires_at <= ? ORDER BY expires_at LIMIT ?",
		d.o.DB.Now(), expiredAtOnce).Scan(ctx, &ids)
	if err != nil {
		return 0, fmt.Errorf("look for expired proposals: %w", err)
	}
	ended := 0
	var errs []error
	for _, id := range ids {
		ok, err := d.expire(ctx, id)
		if ok {
			ended++
		}
		errs = append(errs, err) // one failure must not keep the others open
	}
	return ended, errors.Join(errs...)
}

// expire ends one proposal and reports whether it was still waiting.
func (d *Desk) expire(ctx context.Context, id int64) (ended bool, err error) {
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		a, err := scan(ctx, d.o.DB.ForUpdate(tx.NewSelect()), id)
		if err != nil || a.State != Waiting || a.ExpiresAt > d.o.DB.Now() {
			return err
		}
		action, err := d.action(a.Object, a.Action)
		if err != nil {
			return err
		}
		if err := d.endFree(ctx, tx, action, a, Expired); err != nil {
			return err
		}
		ended = true
		return d.writeAudit(ctx, tx, a, "expire", act.Actor{Name: program}, "", nil)
	})
	if err != nil {
		return false, fmt.Errorf("end proposal %d: %w", id, err)
	}
	return ended, nil
}
