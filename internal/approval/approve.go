package approval

import (
	"context"
	"errors"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
)

// maxTries is how many times an approval that fails may be carried out.
const maxTries = 3

// Verdict is a person's decision about a proposal.
type Verdict struct {
	ID     int64
	Hash   string // of what was shown; unused by Reject and Withdraw
	Reason string
	// Unverified means that a lead approves although the supplier's answer is unknown.
	Unverified bool
	By         act.Actor
	Key        string // key of the form; "" = none
}

// verdictState is a verdict with everything it concerns.
type verdictState struct {
	Verdict
	action  decision
	from    State // state of the approval
	params  any
	common  commonParams
	subject *act.Subject // the object as it was approved; nil = it is not read yet
	live    *act.Live
}

// Approve approves a proposal and carries it out, at once or, if it makes an outside call,
// later. A repeat by the same person gets the same answer, and nothing runs twice. If the
// effect fails, the approval is returned as Failed. Errors: ErrPerson, act.ErrNotFound, ErrSelfApproval,
// *RoleError, ErrExpired, ErrEnded, ErrStaleProposal, *act.FieldError, act.ErrChanged, *LiveError.
func (d *Desk) Approve(ctx context.Context, v Verdict) (*Approval, error) {
	return d.decide(ctx, v, Waiting)
}

// Retry carries out an approval that failed once more. Errors: those of Approve, and
// ErrProposed.
func (d *Desk) Retry(ctx context.Context, v Verdict) (*Approval, error) {
	return d.decide(ctx, v, Failed)
}

func (d *Desk) decide(ctx context.Context, v Verdict, from State) (*Approval, error) {
	a, err := d.decideOnce(ctx, v, from)
	return d.meanwhile(ctx, v, from, a, err, func(now *Approval) bool {
		return from == Waiting && now.approvedBy(v.By) && now.Hash == v.Hash
	})
}

// meanwhile reads an approval again after a verdict about it was refused: whatever it was refused
// for may be the work of a request at the same moment. If this person's own one was carried out,
// that is the answer; if the approval has ended, that is the error.
func (d *Desk) meanwhile(ctx context.Context, v Verdict, from State, a *Approval, refused error,
	repeats func(*Approval) bool,
) (*Approval, error) {
	if refused == nil || ofPerson(refused) {
		return a, refused
	}
	now, err := d.Find(ctx, v.ID, v.By)
	if err != nil {
		return nil, refused
	}
	if repeats(now) {
		return now, nil
	}
	if late := now.late(from, d.o.DB.Now()); late != nil {
		return nil, late
	}
	return nil, refused
}

// ofPerson reports whether a verdict was refused for who gave it, or for how it was written.
func ofPerson(err error) bool {
	_, role := errors.AsType[*RoleError](err)
	_, field := errors.AsType[*act.FieldError](err)
	return role || field || errors.Is(err, ErrSelfApproval) || errors.Is(err, ErrMaker) || errors.Is(err, ErrPerson)
}

// late returns why a verdict about an approval in the state from comes too late. Errors:
// ErrExpired, ErrEnded.
func (a *Approval) late(from State, now int64) error {
	switch {
	case a.State == Expired:
		return ErrExpired
	case a.State != from, from == Failed && a.Tries >= maxTries:
		return ErrEnded
	case from == Waiting && a.ExpiresAt <= now:
		return ErrExpired
	}
	return nil
}

func (d *Desk) decideOnce(ctx context.Context, v Verdict, from State) (*Approval, error) {
	a, c, err := d.checkVerdict(ctx, v, from)
	if err != nil || c == nil {
		return a, err
	}
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var again bool
		if a, again, err = d.lock(ctx, tx, *c); err != nil || again {
			return err
		}
		if err := d.approve(ctx, tx, *c, a); err != nil {
			return err
		}
		return act.SaveKey(ctx, tx, c.Key)
	})
	if failed, ok := errors.AsType[*failure](err); ok {
		return d.fail(ctx, *c, failed.error)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Hit("act_after_commit")
	return a, nil
}

// checkVerdict checks a verdict against the current proposal and queries the supplier again. A nil
// verdictState means that the same person has decided this before, and nothing is left to do.
func (d *Desk) checkVerdict(ctx context.Context, v Verdict, from State) (*Approval, *verdictState, error) {
	a, action, err := d.find(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	if from == Waiting && a.approvedBy(v.By) {
		if v.Hash != a.Hash {
			return nil, nil, ErrStaleProposal
		}
		return a, nil, nil
	}
	if row, err := act.FindByKey(ctx, d.o.DB, v.Key, "approval", a.No()); err != nil || row != nil {
		return a, nil, err // this form was sent before
	}
	c := &verdictState{Verdict: v, action: action, from: from}
	if c.common, err = action.readCommon(a.Params); err != nil {
		return nil, nil, err
	}
	people, err := d.o.Operators.EnabledOf(ctx, a.operator(), v.By.ID)
	if err == nil {
		err = d.admits(*c, a, people)
	}
	if errors.Is(err, ErrExpired) {
		err = d.current(ctx, a, from)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.Reason, err = act.CheckReason(v.Reason); err != nil {
		return nil, nil, err
	}
	if c.params, err = action.params(a.Params); err != nil {
		return nil, nil, err
	}
	s, err := action.find(ctx, d.o.DB.Read, a.ObjectID)
	if err == nil && !a.matches(s, from) {
		err = act.ErrChanged
	}
	if err != nil {
		return nil, nil, err
	}
	c.subject = &s
	if c.live, err = d.queryFor(ctx, a, action, s, c.params); err != nil {
		return nil, nil, err
	}
	if c.live != nil && !c.live.Verified() && !c.common.Unverified && !c.unverified(a) {
		return nil, nil, &LiveError{act.NoAnswer}
	}
	return a, c, nil
}

// unverified reports whether the checker takes responsibility for an unknown answer. The maker,
// who repeats what needs no second person, cannot.
func (c *verdictState) unverified(a *Approval) bool {
	return c.Unverified && c.action.Second.Query != nil && a.Second && !a.SinglePerson
}

// approvedBy reports whether this person has approved it already.
func (a *Approval) approvedBy(by act.Actor) bool {
	return a.Checker != nil && *a.Checker == by.ID && a.IsApproved()
}

// IsApproved reports whether somebody has approved it.
func (a *Approval) IsApproved() bool {
	return slices.Contains([]State{Approved, Executing, Done, Failed}, a.State)
}

// matches reports whether the object is as it was when decided on, or as the failure left it.
func (a *Approval) matches(s act.Subject, from State) bool {
	version := a.Version
	if from == Failed {
		version = a.ReleasedVersion
	}
	return s.Version == version && s.Amount == a.Amount && s.Currency == a.Currency
}

// find reads the proposal that a verdict is about. Errors: ErrPerson, act.ErrNotFound.
func (d *Desk) find(ctx context.Context, v Verdict) (*Approval, decision, error) {
	if v.By.Token != nil || v.By.ID == 0 {
		return nil, decision{}, ErrPerson
	}
	a, err := d.Find(ctx, v.ID, v.By)
	if err != nil {
		return nil, decision{}, err
	}
	action, err := d.action(a.Object, a.Action)
	return a, action, err
}

// mayDecide reports whether the actor's role may decide this. Errors: *RoleError.
func (d *Desk) mayDecide(c verdictState, a *Approval) error {
	if a.SinglePerson || !a.Second { // a retry needs only the right to propose
		if !d.has(c.By.Roles, c.action.Permission) {
			return &RoleError{Permission: c.action.Permission, Roles: d.o.Policy.RolesWith(c.action.Permission)}
		}
		return nil
	}
	return d.checks(c.action, a.makerRoles(), c.By.Roles, c.common.Unverified || c.unverified(a))
}

// bindsOperator reports whether a proposal holds only as long as its maker may propose it. What a
// merchant asked for is its own, and a command has no operator.
func (a *Approval) bindsOperator(action decision) bool {
	command := a.MakerKind == ByOperator && a.Maker == 0
	return a.MakerKind != ByMerchant && !(command && action.Second.Command)
}

// current reports why a verdict comes too late, and ends a proposal that has expired. Errors:
// ErrExpired, ErrEnded.
func (d *Desk) current(ctx context.Context, a *Approval, from State) error {
	late := a.late(from, d.o.DB.Now())
	if from == Waiting && a.State == Waiting && errors.Is(late, ErrExpired) {
		if _, err := d.expire(ctx, a.ID); err != nil {
			return err
		}
	}
	return late
}

// lock locks the people and the approval for the transaction, and checks what may have changed
// meanwhile. again = another request with the same form or by the same person has decided it.
func (d *Desk) lock(ctx context.Context, tx db.Tx, c verdictState) (a *Approval, again bool, err error) {
	first, err := act.ClaimKey(ctx, tx, d.o.DB.Now(), c.Key)
	if err != nil {
		return nil, false, err
	}
	seen, err := Find(ctx, tx, c.ID)
	if err != nil {
		return nil, false, err
	}
	people, err := d.o.Operators.Lock(ctx, tx, seen.operator(), c.By.ID)
	if err != nil {
		return nil, false, err
	}
	if a, err = scan(ctx, d.o.DB.ForUpdate(tx.NewSelect()), c.ID); err != nil {
		return nil, false, err
	}
	if !first || c.from == Waiting && a.approvedBy(c.By) {
		return a, true, nil
	}
	return a, false, d.admits(c, a, people)
}

// admits checks a verdict before the supplier is queried, and again within the transaction: who
// gives it, whether it comes too late, who proposed it, and what was seen. Late goes before the
// maker, so that a proposal of somebody who is gone does not wait on. Errors: ErrSelfApproval, *RoleError,
// ErrExpired, ErrEnded, ErrStaleProposal.
func (d *Desk) admits(c verdictState, a *Approval, people map[int64]*access.Operator) error {
	if err := d.checker(c, a, people); err != nil {
		return err
	}
	if err := a.late(c.from, d.o.DB.Now()); err != nil {
		return err
	}
	if err := d.maker(c, a, people); err != nil {
		return err
	}
	if a.Hash != c.Hash {
		return ErrStaleProposal
	}
	return nil
}

// checker checks who decides as they are now, and notes their role. Errors: ErrSelfApproval, *RoleError.
func (d *Desk) checker(c verdictState, a *Approval, enabled map[int64]*access.Operator) error {
	checker, maker := enabled[c.By.ID], enabled[a.operator()]
	switch {
	case checker == nil:
		return &RoleError{Permission: c.action.Second.Approve, Roles: d.o.Policy.RolesWith(c.action.Second.Approve)}
	case a.Second && !a.SinglePerson && (a.madeBy(c.By) || maker != nil && same(maker, checker)):
		return ErrSelfApproval
	}
	c.By.Roles = checker.Roles
	return d.mayDecide(c, a)
}

// maker checks that who proposed it still may. Errors: *RoleError.
func (d *Desk) maker(c verdictState, a *Approval, enabled map[int64]*access.Operator) error {
	var now access.Roles // none if the maker is gone
	if maker := enabled[a.operator()]; maker != nil {
		now = maker.Roles
	}
	if denied, ok := errors.AsType[*act.Denied](d.mayPropose(c.action, c.subject, now)); ok && a.bindsOperator(c.action) {
		return &RoleError{Permission: denied.Permission, Roles: denied.Roles, OfMaker: true}
	}
	return nil
}

// approve writes the approval and carries it out.
func (d *Desk) approve(ctx context.Context, tx db.Tx, c verdictState, a *Approval) error {
	s, err := c.action.find(ctx, tx, a.ObjectID)
	if err == nil {
		s, err = c.action.lock(ctx, tx, s, c.params)
	}
	if err == nil && !a.matches(s, c.from) {
		err = act.ErrChanged
	}
	if err == nil && c.from == Failed {
		err = d.hold(ctx, tx, c.action, a, &s)
	}
	if err != nil {
		return err
	}
	d.sign(c, a)
	if err := d.writeAudit(ctx, tx, a, c.step(), c.By, c.Reason, c.record(a)); err != nil {
		return err
	}
	names, err := access.Names(ctx, tx, []int64{a.checker()})
	if err != nil {
		return err
	}
	return d.carryOut(ctx, tx, c, a, actor(a.checker(), names), s)
}

func (c verdictState) step() string {
	if c.from == Failed {
		return "again"
	}
	return "approve"
}

// record is what the audit stores of a verdict besides its reason.
func (c verdictState) record(a *Approval) map[string]any {
	facts := answerOf(c.live)
	if facts != nil && a.Unverified {
		facts["unverified"] = true
	}
	return facts
}

// sign enters the checker into an approval.
func (d *Desk) sign(c verdictState, a *Approval) {
	a.Unverified = c.unverified(a) && c.live != nil && !c.live.Verified()
	if a.State == Waiting {
		now := d.o.DB.Now()
		a.Checker, a.CheckerReason, a.DecidedAt = &c.By.ID, c.Reason, &now
	}
}

// checker returns who approved it; for a decision by one person, its maker.
func (a *Approval) checker() int64 {
	if a.Checker == nil {
		return a.Maker
	}
	return *a.Checker
}

func actor(id int64, names map[int64]string) act.Actor {
	if id == 0 {
		return act.Actor{Name: "command"}
	}
	return act.Actor{Name: "operator:" + names[id], ID: id}
}
