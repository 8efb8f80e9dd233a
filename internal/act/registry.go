package act

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"unicode/utf8"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
)

// Limits of a reason, in characters.
const (
	minReason = 8
	maxReason = 1000
)

// AmountAsShown is said of an amount that was typed in another way.
var AmountAsShown = text.Text{ZH: "请按显示的金额原样输入", EN: "type the amount exactly as it is shown"}

var tReason = text.Text{ZH: "请填写 %d 到 %d 个字的理由", EN: "write a reason of %d to %d characters"}

// Registry holds all kinds of acts. It is safe for concurrent use.
type Registry struct {
	db     *db.DB
	audit  *audit.Log
	policy *access.Policy
	kinds  map[string]Kind
	sets   []Kind
}

// New returns a Registry of the kinds. It panics if a kind is incomplete or registered twice.
func New(d *db.DB, log *audit.Log, policy *access.Policy, kinds ...Kind) *Registry {
	r := &Registry{db: d, audit: log, policy: policy, kinds: map[string]Kind{}}
	for _, k := range kinds {
		if _, twice := r.kinds[k.Name]; twice || k.Object == "" || k.Permission == "" || k.Load == nil {
			panic("act: " + k.Name + " is registered twice or incomplete")
		}
		r.kinds[k.Name] = k
		if k.Set != nil {
			r.sets = append(r.sets, k.set())
		}
	}
	return r
}

// Policy returns the policy of the roles.
func (r *Registry) Policy() *access.Policy { return r.policy }

// Kind returns the kind with this name. It panics if there is none: names are constants of the
// program.
func (r *Registry) Kind(name string) Kind {
	k, ok := r.kinds[name]
	if !ok {
		panic("act: there is no kind " + name)
	}
	return k
}

// Call is a request for one act on one subject.
type Call struct {
	Kind   string
	By     Actor
	Ref    Ref
	Params json.RawMessage
	Reason string
	Amount string // as typed, if the Kind requires it
	// Version is the version that the caller saw; 0 = any.
	Version int64
	// Key makes a call idempotent: of several calls with one key, only one acts. "" = each
	// acts.
	Key string
}

// Run performs one act and writes its audit row in one transaction. Errors: *FieldError,
// *Denied, ErrNotFound, ErrChanged, and those of the Kind.
func (r *Registry) Run(ctx context.Context, c Call) (Outcome, error) {
	k := r.Kind(c.Kind)
	if err := r.allows(c.By, k); err != nil {
		return Outcome{}, err
	}
	in, err := c.input(k)
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	err = r.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		first, err := ClaimKey(ctx, tx, r.db.Now(), c.Key)
		if err != nil || !first {
			out.Repeated = !first
			return err
		}
		s, err := r.load(ctx, tx, k, c, in)
		if err != nil {
			return err
		}
		if out, err = k.do(ctx, tx, in, s); err != nil || out.SkipAudit {
			return err
		}
		if err := r.keep(ctx, tx, k, in, s, out); err != nil {
			return err
		}
		return SaveKey(ctx, tx, c.Key)
	})
	if err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// allows checks the permission or scope that a kind requires. Errors: *Denied.
func (r *Registry) allows(by Actor, k Kind) error {
	if by.Token != nil {
		if k.Scope == "" || !by.Token.Has(k.Scope) {
			return &Denied{Scope: k.Scope}
		}
		return nil
	}
	if by.OfMerchant && k.OfMerchant {
		return nil
	}
	return r.has(by, k.Permission)
}

func (r *Registry) has(by Actor, p access.Permission) error {
	if by.Token != nil || !r.policy.Allows(by.Roles, p) {
		return &Denied{Permission: p, Roles: r.policy.RolesWith(p)}
	}
	return nil
}

// input validates everything in a call except its subject.
func (c Call) input(k Kind) (in Input, err error) {
	in = Input{By: c.By}
	if in.Params, err = k.Params.Read(c.Params); err != nil {
		return in, err
	}
	if k.NoReason && strings.TrimSpace(c.Reason) == "" {
		return in, nil
	}
	in.Reason, err = CheckReason(c.Reason)
	return in, err
}

// CheckReason returns the reason as it will be stored. Errors: *FieldError.
func CheckReason(text string) (string, error) {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n < minReason || n > maxReason || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return text, invalid.Field("reason", tReason, minReason, maxReason)
	}
	return text, nil
}

// load finds the subject and checks everything that depends on it.
func (r *Registry) load(ctx context.Context, tx db.Tx, k Kind, c Call, in Input) (Subject, error) {
	found, err := k.Load(ctx, tx, []Ref{c.Ref})
	if err != nil {
		return Subject{}, err
	}
	if len(found) != 1 || !c.By.Sees(found[0].MerchantID) {
		return Subject{}, ErrNotFound
	}
	s := found[0]
	if k.ExtraPermission != nil {
		if needs := k.ExtraPermission(s, in.Params); needs != "" {
			if err := r.has(c.By, needs); err != nil {
				return s, err
			}
		}
	}
	if c.Version != 0 && c.Version != s.Version {
		return s, ErrChanged
	}
	if k.TypedAmount && c.Amount != s.TypedAmount() {
		return s, invalid.Field("amount", AmountAsShown)
	}
	return s, nil
}

// do acts on one subject.
func (k Kind) do(ctx context.Context, tx db.Tx, in Input, s Subject) (Outcome, error) {
	if k.Do == nil {
		return Outcome{}, nil
	}
	outs, err := k.Do(ctx, tx, in, []Subject{s})
	if err != nil {
		return Outcome{}, err
	}
	return outs[0], outs[0].Err
}

// keep writes the audit rows.
func (r *Registry) keep(ctx context.Context, tx db.Tx, k Kind, in Input, s Subject, out Outcome) error {
	for _, a := range append(out.ExtraAudit, audit.Act{Action: k.Name, Object: k.Object, ObjectID: s.ID, Params: out.Details}) {
		a.Actor, a.Remote, a.Params = in.By.Name, in.By.Remote, maps.Clone(a.Params)
		if a.Params == nil {
			a.Params = map[string]any{}
		}
		if in.Reason != "" {
			a.Params["reason"] = in.Reason
		}
		if err := r.audit.Write(ctx, tx, a); err != nil {
			return err
		}
	}
	return nil
}
