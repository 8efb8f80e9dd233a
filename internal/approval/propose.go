package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/field"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/evidence"

	"github.com/uptrace/bun"
)

// commonParams are the parameters that every action accepts.
var tUnverified = text.Text{
	ZH: "渠道没有给出明确结果：请勾选“未经渠道证实”，由财务主管复核",
	EN: "the supplier's answer is unknown: propose it as unverified, for a lead to approve",
}

type commonParams struct {
	Evidence   string `json:"evidence" kind:"text" max:"2000" required:"true" says:"say what proves it" says_zh:"请写明依据"`
	Unverified bool   `json:"unverified"` // the supplier's answer is unknown; a lead takes responsibility
}

// commonFields are the declarations of commonParams: evidence, and unverified.
var commonFields = field.Of(reflect.TypeFor[commonParams]())

// noParams refuses parameters of an action that has none of its own.
var noParams = act.ParamsOf[struct{}]()

// parsedProposal is a proposal whose parameters have been read.
type parsedProposal struct {
	Proposal
	action decision
	raw    json.RawMessage // canonical
	params any
	common commonParams
	live   *act.Live
}

// Propose makes a proposal, and carries it out if no second person is needed. Errors:
// ErrPerson, *act.Denied, *act.FieldError, act.ErrNotFound, act.ErrChanged, ErrEnded,
// ErrProposed, ErrNoSecond, *LiveError, and those of the action if it is carried out.
func (d *Desk) Propose(ctx context.Context, p Proposal) (*Approval, error) {
	w, s, err := d.read(ctx, p)
	if earlier, ok := errors.AsType[*duplicateForm](err); ok {
		return earlier.Approval, nil
	}
	if err != nil {
		return nil, err
	}
	// The supplier is queried outside any transaction. Its answer may change the object.
	if w.live, err = d.ask(ctx, w.action, s, w.params); err != nil {
		return nil, err
	}
	if w.live != nil && !w.live.Verified() && !w.common.Unverified {
		return nil, invalid.Field("params.unverified", tUnverified)
	}
	var a *Approval
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		first, err := act.ClaimKey(ctx, tx, d.o.DB.Now(), p.Key)
		if err != nil || !first {
			return err
		}
		if a, err = d.propose(ctx, tx, w); err != nil {
			return err
		}
		return act.SaveKey(ctx, tx, p.Key)
	})
	if err != nil {
		return nil, err
	}
	if a == nil { // the same form was submitted concurrently
		earlier, ok := errors.AsType[*duplicateForm](d.duplicateForm(ctx, p))
		if !ok {
			return nil, db.ErrStale
		}
		return earlier.Approval, nil
	}
	if a.State == Waiting {
		failpoint.Hit("proposal_written")
	} else {
		failpoint.Hit("act_after_commit")
	}
	return a, nil
}

// read validates a proposal against the current object.
func (d *Desk) read(ctx context.Context, p Proposal) (w parsedProposal, s act.Subject, err error) {
	w.Proposal = p
	if p.By.Token != nil {
		return w, s, ErrPerson
	}
	if w.action, err = d.action(p.Object, p.Action); err != nil {
		return w, s, err
	}
	if err = d.person(p.By, w.action); err != nil {
		return w, s, err
	}
	if err = d.duplicateForm(ctx, p); err != nil {
		return w, s, err
	}
	if w.Reason, err = act.CheckReason(p.Reason); err != nil {
		return w, s, err
	}
	if err = w.readParams(); err != nil {
		return w, s, err
	}
	if s, err = load(ctx, d.o.DB.Read, w.action, p.ObjectID, p.By); err != nil {
		return w, s, err
	}
	s = w.action.money(s, w.params)
	if err = d.mayPropose(w.action, &s, p.By.Roles); err != nil {
		return w, s, err
	}
	return w, s, d.applicable(ctx, d.o.DB.Read, w, s)
}

// duplicateForm carries the approval that this form has already created. It is not a failure.
type duplicateForm struct{ *Approval }

func (*duplicateForm) Error() string { return "this form was sent before" }

// duplicateForm finds what the form with this key created. Errors: *duplicateForm.
func (d *Desk) duplicateForm(ctx context.Context, p Proposal) error {
	row, err := act.FindByKey(ctx, d.o.DB, p.Key, "approval", "")
	if err != nil || row == nil {
		return err
	}
	id, err := ParseNo(row.ObjectID)
	if err != nil {
		return err
	}
	a, err := Find(ctx, d.o.DB, id)
	if err == nil && a.MakerKind == ByOperator && a.Maker == p.By.ID {
		err = &duplicateForm{a}
	}
	return err
}

// readParams parses the parameters, including those that every action accepts.
func (w *parsedProposal) readParams() error {
	raw := bytes.TrimSpace(w.Params)
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	canonical, err := evidence.Canonical(raw)
	if err != nil || canonical[0] != '{' {
		return &act.FieldError{Field: "params", Problem: "use a JSON object whose numbers are whole"}
	}
	w.raw = canonical
	if w.common, err = w.action.readCommon(canonical); err != nil {
		return err
	}
	problem := commonFields[0].Problem(reflect.ValueOf(strings.TrimSpace(w.common.Evidence)))
	if w.action.Second.Evidence && problem.EN != "" {
		return &act.FieldError{Field: "params.evidence", Problem: problem.EN, Says: problem}
	}
	w.params, err = w.action.params(canonical)
	return err
}

// readCommon parses what every action accepts. Where no supplier is queried, nothing is
// unverified.
func (a decision) readCommon(params json.RawMessage) (s commonParams, err error) {
	err = json.Unmarshal(params, &s)
	s.Unverified = s.Unverified && a.Second.Query != nil
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return s, &act.FieldError{Field: "params." + typed.Field, Problem: "not of the right type"}
	}
	return s, err
}

// params parses the action's own parameters: those besides what every action accepts.
// Errors: *act.FieldError.
func (a decision) params(raw json.RawMessage) (any, error) {
	own := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, &act.FieldError{Field: "params", Problem: "not a JSON object"}
	}
	delete(own, "evidence")
	delete(own, "unverified")
	raw, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	declared := a.Params
	if declared.Fields == nil {
		declared = noParams
	}
	v, err := declared.Read(raw)
	if f, ok := errors.AsType[*act.FieldError](err); ok && f.Field != "params" && !strings.HasPrefix(f.Field, "params.") {
		err = &act.FieldError{Field: "params." + f.Field, Problem: f.Problem, Says: f.Says}
	}
	return v, err
}

// ask queries the supplier. Errors: *LiveError.
func (d *Desk) ask(ctx context.Context, a decision, s act.Subject, params any) (*act.Live, error) {
	if a.Second.Query == nil {
		return nil, nil
	}
	live, err := a.Second.Query(ctx, s, params)
	if err == nil && live != nil && live.Contradicts {
		err = &LiveError{live.Answer}
	}
	return live, err
}

// queryFor queries the supplier about a stored proposal, and stores the answer with it. Errors:
// *LiveError.
func (d *Desk) queryFor(ctx context.Context, a *Approval, action decision, s act.Subject, params any) (*act.Live, error) {
	live, contrary := d.ask(ctx, action, s, params)
	if action.Second.Query == nil || live == nil && contrary != nil {
		return nil, contrary
	}
	a.answered(live)
	err := d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		_, err := tx.NewUpdate().Model(a).Column("live_answer", "live_contrary", "live_at").WherePK().Exec(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store the supplier's answer for %s: %w", a.No(), err)
	}
	return live, contrary
}

// propose writes a proposal, and carries it out if no second person is needed.
func (d *Desk) propose(ctx context.Context, tx db.Tx, w parsedProposal) (a *Approval, err error) {
	people, err := d.o.Operators.Lock(ctx, tx, w.By.ID)
	if err != nil {
		return nil, err
	}
	maker := people[w.By.ID]
	if w.By.ID == 0 { // a command, see person
		maker = &access.Operator{Name: w.By.Name, Roles: w.By.Roles}
	}
	if maker == nil || !d.has(maker.Roles, w.action.Permission) {
		return nil, &act.Denied{Permission: w.action.Permission, Roles: d.o.Policy.RolesWith(w.action.Permission)}
	}
	s, err := load(ctx, tx, w.action, w.ObjectID, w.By)
	if err == nil {
		s, err = w.action.lock(ctx, tx, s, w.params)
		s = w.action.money(s, w.params)
	}
	if err == nil {
		err = d.mayPropose(w.action, &s, maker.Roles)
	}
	if err == nil {
		err = d.applicable(ctx, tx, w, s)
	}
	if err != nil {
		return nil, err
	}
	now := d.o.DB.Now()
	a = &Approval{
		ID: d.o.DB.NewID(), Action: w.action.Name, Object: w.action.Object, ObjectID: w.ObjectID, MerchantID: s.MerchantID,
		Amount:   s.Amount,
		Currency: s.Currency, Params: w.raw, Reason: w.Reason, Evidence: w.common.Evidence, Maker: w.By.ID, MakerKind: ByOperator,
		OrderNo: s.OrderNo, State: Waiting,
		Second: w.action.second(s, w.params), MadeAt: now, ExpiresAt: now + d.o.Life.Microseconds(),
	}
	a.answered(w.live)
	if w.By.ID != 0 {
		a.MakerRole = maker.Roles
	}
	waits := a.Second && d.waits(w.action, s)
	a.SinglePerson = a.Second && !waits
	if waits {
		found, err := d.hasChecker(ctx, tx, w.action, maker, a.makerRoles(), w.common.Unverified)
		if err == nil && !found {
			err = ErrNoSecond
		}
		if err != nil {
			return nil, err
		}
	} else if a.SinglePerson && w.common.Unverified && !maker.Roles.Has(access.Lead) {
		return nil, &RoleError{Permission: w.action.Second.Approve, Roles: []string{access.Lead}}
	}
	if err := d.hold(ctx, tx, w.action, a, &s); err != nil {
		return nil, err
	}
	a.Version = s.Version
	if a.Hash, err = Sum(a); err != nil {
		return nil, err
	}
	if _, err := tx.NewInsert().Model(a).Exec(ctx); db.IsUnique(err) {
		return nil, ErrProposed
	} else if err != nil {
		return nil, fmt.Errorf("write a proposal: %w", err)
	}
	if err := d.writeAudit(ctx, tx, a, "propose", w.By, a.Reason, answerOf(w.live)); err != nil || waits {
		return a, err
	}
	a.DecidedAt = &now
	return a, d.carryOut(ctx, tx, verdictState{action: w.action, params: w.params, live: w.live}, a, w.By, s)
}

func answerOf(live *act.Live) map[string]any {
	if live == nil {
		return nil
	}
	answer := live.Answer
	if answer == "" {
		answer = "not_asked"
	}
	return map[string]any{"live": answer}
}

// lock takes the locks that come before the object's, and reloads the object.
func (a decision) lock(ctx context.Context, tx db.Tx, s act.Subject, params any) (act.Subject, error) {
	if a.Second.Lock == nil {
		return s, nil
	}
	if err := a.Second.Lock(ctx, tx, s, params); err != nil {
		return s, err
	}
	return a.find(ctx, tx, s.ID)
}

// money returns the object with the money that is decided.
func (a decision) money(s act.Subject, params any) act.Subject {
	if a.Second.Amount != nil {
		s.Amount = a.Second.Amount(params)
	}
	return s
}

// hold marks the object as proposed, or makes it, and reloads it.
func (d *Desk) hold(ctx context.Context, tx db.Tx, action decision, a *Approval, s *act.Subject) error {
	if action.Second.Reserve == nil {
		return nil
	}
	p := a.proposed()
	err := action.Second.Reserve(ctx, tx, p, *s)
	if a.Action, a.Object, a.ObjectID, a.Params = p.Action, p.Object, p.ObjectID, p.Params; err == nil && a.Object != action.Object {
		action, err = d.action(a.Object, a.Action)
	}
	if err == nil {
		*s, err = action.find(ctx, tx, a.ObjectID)
	}
	return err
}

// applicable checks a proposal against the current object.
func (d *Desk) applicable(ctx context.Context, q bun.IDB, w parsedProposal, s act.Subject) error {
	var open int
	err := q.NewRaw("SELECT count(*) FROM approvals WHERE object = ? AND object_id = ? AND "+Moves.In("state", Moves.Open()...),
		w.action.Object, w.ObjectID).Scan(ctx, &open)
	if err != nil {
		return fmt.Errorf("look for an open proposal: %w", err)
	}
	if open > 0 {
		return ErrProposed
	}
	if err := w.action.applicable(s); err != nil {
		return err
	}
	if w.Version != 0 && w.Version != s.Version {
		return act.ErrChanged
	}
	if w.action.Second.Check != nil {
		if err := w.action.Second.Check(ctx, q, s, w.params); err != nil {
			return err
		}
	}
	typed := s.TypedAmount()
	if typed != "" && w.Amount != typed && (w.Amount != "" || d.o.Rules().NeedsTyping(s.Amount, s.Currency)) {
		return invalid.Field("amount", act.AmountAsShown)
	}
	return nil
}
