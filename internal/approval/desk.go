package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/field"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Options of a Desk.
type Options struct {
	DB        *db.DB
	Audit     *audit.Log
	Policy    *access.Policy
	Rules     func() settings.Rules // as declared now
	Life      time.Duration         // life of a proposal
	Operators *access.Operators
	Log       *slog.Logger
}

// Desk is where decisions are proposed and approved. It is safe for concurrent use.
type Desk struct {
	o       Options
	actions []decision
}

// decision is a kind of act that needs two people.
type decision struct{ act.Kind }

// NewDesk returns a Desk of those of the kinds that have a Second. It panics if one is incomplete or
// registered twice.
func NewDesk(o Options, kinds ...act.Kind) *Desk {
	d := &Desk{o: o}
	for _, k := range kinds {
		if k.Second == nil {
			continue
		}
		twice := slices.ContainsFunc(d.actions, func(b decision) bool { return k.Name == b.Name && k.Object == b.Object })
		if twice || k.Name == "" || k.Object == "" || k.Permission == "" || k.Second.Approve == "" || k.Load == nil || k.Do == nil ||
			(k.Second.Amount == nil) != (k.Second.Most == nil) {
			panic("approval: " + k.Name + " is registered twice or incomplete")
		}
		d.actions = append(d.actions, decision{k})
	}
	return d
}

// action finds an action. Errors: *act.FieldError.
func (d *Desk) action(object, name string) (decision, error) {
	for _, a := range d.actions {
		if a.Name == name && (object == "" || a.Object == object) {
			return a, nil
		}
	}
	return decision{}, invalid.Field("action", text.Text{ZH: "没有这种处理", EN: "there is no such action"})
}

// Kinds returns all kinds of decisions.
func (d *Desk) Kinds() []act.Kind {
	all := make([]act.Kind, len(d.actions))
	for i, a := range d.actions {
		all[i] = a.Kind
	}
	return all
}

// Names returns the names of all actions, sorted.
func (d *Desk) Names() []string {
	var names []string
	for _, a := range d.actions {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Offers returns the actions that the actor may propose for an object in its current state.
func (d *Desk) Offers(by act.Actor, object string, s act.Subject) []Offer {
	offers := []Offer{}
	for _, a := range d.actions {
		if a.Object != object || by.Token != nil || d.mayPropose(a, &s, by.Roles) != nil || a.applicable(s) != nil {
			continue
		}
		o := a.form(func(f field.Field) bool { return a.Second.Takes == nil || a.Second.Takes(s, f.Name) })
		o.NeedsSecond = a.second(s, nil) && d.waits(a, s)
		offers = append(offers, o)
	}
	return offers
}

// Form returns the offer of an action with all of its parameters, whatever the object's state.
// Errors: *act.FieldError.
func (d *Desk) Form(object, name string) (Offer, error) {
	a, err := d.action(object, name)
	if err != nil {
		return Offer{}, err
	}
	return a.form(func(field.Field) bool { return true }), nil
}

// form returns the offer of the action with those parameters, of its own and of any action, that
// are asked for.
func (a decision) form(asks func(field.Field) bool) Offer {
	o := Offer{Action: a.Name, Params: map[string]string{}, Free: a.Second.Amount != nil}
	for _, f := range slices.Concat(a.Params.Fields, commonFields) {
		unused := f.Name == "evidence" && !a.Second.Evidence || f.Name == "unverified" && !a.Second.Unverified
		if !unused && asks(f) {
			o.Fields, o.Params[f.Name] = append(o.Fields, f), typeOf(f)
		}
	}
	return o
}

// typeOf returns the type of a parameter as the API has it.
func typeOf(f field.Field) string {
	switch f.Kind {
	case field.Choice:
		return strings.Join(f.Choices, "|")
	case field.Money, field.Number:
		return "integer"
	case field.Flag:
		return "boolean"
	}
	return "text"
}

var tNotInState = text.Text{ZH: "当前状态下不能这样处理", EN: "this action does not apply in the current state"}

// applicable reports whether the action may be proposed for the object in its current state. Errors:
// ErrEnded, *act.FieldError.
func (a decision) applicable(s act.Subject) error {
	if a.Second.Ended != nil && a.Second.Ended(s) {
		return ErrEnded
	}
	if a.Second.ByMerchant || a.Second.Applies != nil && !a.Second.Applies(s) {
		return invalid.Field("action", tNotInState)
	}
	return nil
}

func (a decision) second(s act.Subject, params any) bool {
	return a.Second.Needed == nil || a.Second.Needed(s, params)
}

// waits reports whether a decision of two people waits for the second one: always, unless
// `second_person: false` allows this amount to be decided alone.
func (d *Desk) waits(a decision, s act.Subject) bool {
	rules := d.o.Rules()
	if rules.SecondPerson || a.Second.Always {
		return true
	}
	limit := rules.Above[s.Currency].Amount
	return s.TypedAmount() != "" && (limit == 0 || s.Amount > limit)
}

// person admits operators, and commands where the action does. Errors: ErrPerson, *act.Denied.
func (d *Desk) person(by act.Actor, a decision) error {
	if by.Token != nil || by.ID == 0 && !a.Second.Command {
		return ErrPerson
	}
	if !d.has(by.Roles, a.Permission) {
		return &act.Denied{Permission: a.Permission, Roles: d.o.Policy.RolesWith(a.Permission)}
	}
	return nil
}

// has reports whether one of the roles has the permission.
func (d *Desk) has(roles access.Roles, permission access.Permission) bool {
	return roles.HasAny(d.o.Policy.RolesWith(permission)...)
}

// mayPropose reports whether somebody of these roles may propose the action for the object; nil =
// for some object. Errors: *act.Denied.
func (d *Desk) mayPropose(a decision, s *act.Subject, roles access.Roles) error {
	needs := a.Permission
	if s != nil && d.has(roles, needs) && a.ExtraPermission != nil {
		needs = cmp.Or(a.ExtraPermission(*s, nil), needs)
	}
	if !d.has(roles, needs) {
		return &act.Denied{Permission: needs, Roles: d.o.Policy.RolesWith(needs)}
	}
	return nil
}

// checkers returns the roles that may approve what somebody of these roles proposed: where money
// is decided, others than a lead only what a lead proposed, and never what is unverified.
func (d *Desk) checkers(a decision, maker access.Roles, unverified bool) []string {
	return slices.DeleteFunc(d.o.Policy.RolesWith(a.Second.Approve), func(role string) bool {
		return role != access.Lead && (unverified || a.Second.Approve == access.ApproveMoney && !maker.Has(access.Lead))
	})
}

// checks reports whether the checker may approve what the maker proposed. Errors: *RoleError.
func (d *Desk) checks(a decision, maker, checker access.Roles, unverified bool) error {
	if roles := d.checkers(a, maker, unverified); !checker.HasAny(roles...) {
		return &RoleError{Permission: a.Second.Approve, Roles: roles}
	}
	return nil
}

// same reports whether two accounts belong to one person.
func same(a, b *access.Operator) bool {
	return a.ID == b.ID || strings.EqualFold(strings.TrimSpace(a.Name), strings.TrimSpace(b.Name))
}

// hasChecker reports whether an enabled operator may approve what the maker proposes.
func (d *Desk) hasChecker(ctx context.Context, tx db.Tx, a decision, maker *access.Operator, roles access.Roles,
	unverified bool,
) (bool, error) {
	all, err := access.Enabled(ctx, tx)
	return slices.ContainsFunc(all, func(op access.Operator) bool {
		return !same(maker, &op) && d.checks(a, roles, op.Roles, unverified) == nil
	}), err
}

// load finds an object that the actor may see. Errors: act.ErrNotFound.
func load(ctx context.Context, q bun.IDB, a decision, id string, by act.Actor) (act.Subject, error) {
	s, err := a.find(ctx, q, id)
	if err == nil && !by.Sees(s.MerchantID) {
		err = act.ErrNotFound
	}
	return s, err
}

// find finds an object. Errors: act.ErrNotFound.
func (a decision) find(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
	found, err := a.Load(ctx, q, []act.Ref{{ID: id}})
	if err == nil && len(found) != 1 {
		err = act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, err
	}
	return found[0], nil
}

// move is the only write of an approval's state: a compare-and-set that Moves allows. Errors:
// db.ErrStale.
func (d *Desk) move(ctx context.Context, tx db.Tx, a *Approval, to State, columns ...string) error {
	from := Moves.From(to, a.State)
	a.State = to
	res, err := tx.NewUpdate().Model(a).Column(append(columns, "state")...).WherePK().Where("ap.state IN (?)", bun.List(from)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write approval %s as %s: %w", a.No(), to, err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return db.ErrStale
	}
	return nil
}

// writeAudit records a step of an approval in the audit.
func (d *Desk) writeAudit(ctx context.Context, tx db.Tx, a *Approval, step string, by act.Actor, reason string, more map[string]any) error {
	params := map[string]any{"action": a.Action, a.Object: a.ObjectID, "hash": a.Hash}
	maps.Copy(params, more)
	if reason != "" {
		params["reason"] = reason
	}
	if a.SinglePerson {
		params["alone"] = true
	}
	return d.o.Audit.Write(ctx, tx, audit.Act{
		Actor: by.Name, Action: "approval." + step, Object: "approval", ObjectID: a.No(), Params: params, Remote: by.Remote,
	})
}

// free undoes what Reserve did to the object, and stores the object's new version.
func (d *Desk) free(ctx context.Context, tx db.Tx, action decision, a *Approval) error {
	s, err := action.find(ctx, tx, a.ObjectID)
	if errors.Is(err, act.ErrNotFound) {
		return nil // removed by a clean-up
	}
	if err == nil && action.Second.Release != nil {
		if err = action.Second.Release(ctx, tx, a.proposed(), s); err == nil {
			s, err = action.find(ctx, tx, a.ObjectID)
		}
	}
	a.ReleasedVersion = s.Version
	return err
}
