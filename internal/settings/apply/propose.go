package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/settings"
)

// wait is a change with fields that wait for a second person.
type wait struct {
	change settings.Change
	fields []string
}

// words returns the fields of the entry that wait.
func (w wait) words() (words []string) {
	for _, at := range w.fields {
		word, _, _ := strings.Cut(at, ".")
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// split moves the fields that need a second person from changes to waits, if the rules require
// it and orders exist. Changes of the rules wait even without orders: otherwise one person
// could switch the rules off.
func (d *declaration) split(ctx context.Context) error {
	if !d.stored.Approval().Apply {
		return nil
	}
	var orders bool
	if err := d.env.DB.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM orders)").Scan(ctx, &orders); err != nil {
		return fmt.Errorf("look for orders: %w", err)
	}
	for i, c := range d.changes {
		if !orders && c.Object != settings.ApprovalObject {
			continue
		}
		now, fields := c.Split()
		if len(fields) > 0 {
			d.changes[i] = now
			d.waits = append(d.waits, wait{c, fields})
		}
	}
	return d.check() // the immediate changes must be valid without the waiting ones
}

// waiting returns the waiting change of an object; nil = none.
func (d *declaration) waiting(o settings.Object) *wait {
	for i := range d.waits {
		if d.waits[i].change.Object == o {
			return &d.waits[i]
		}
	}
	return nil
}

// reported returns the outcomes without those of objects whose changes all wait.
func (d *declaration) reported(outcomes []settings.Outcome) []settings.Outcome {
	return slices.DeleteFunc(outcomes, func(o settings.Outcome) bool { return o.What == settings.Unchanged && d.waiting(o.Object) != nil })
}

// maker returns who proposes: the operator whose token was given, who then may not approve it,
// or else the command itself. Whoever runs commands may change settings.
func (e Env) maker(ctx context.Context) (by act.Actor, err error) {
	const how = "set BACKSTOP_OPERATOR_TOKEN to a personal token (backstop operator token NAME) of who proposes, or to nothing"
	if e.Token == "" {
		return act.Actor{Name: audit.Command(), Roles: access.Admin}, nil
	}
	op, err := access.NewPersonalTokens(e.DB, e.Keys).Find(ctx, e.Token)
	if errors.Is(err, access.ErrSession) {
		return by, fmt.Errorf("%w: the token of BACKSTOP_OPERATOR_TOKEN has expired, was revoked, or belongs to a disabled operator: %s",
			approval.ErrPerson, how)
	}
	if err != nil {
		return by, err
	}
	return act.Actor{Name: "operator:" + op.Name, ID: op.ID, Roles: op.Roles}, nil
}

// proposer makes the proposals of one file.
type proposer struct {
	env    Env
	by     act.Actor
	reason string
	made   map[settings.Object]bool // proposed and reported
	ids    *[]string                // gets the public ids of the proposals; nil = they are not needed
}

// propose makes a proposal for each entry that waits. It may be called again.
func (p *proposer) propose(ctx context.Context, d *declaration) error {
	for _, w := range d.waits {
		if p.made[w.change.Object] {
			continue
		}
		a, err := p.one(ctx, d, w)
		if err != nil {
			return fmt.Errorf("%s: %s: %w; the changes that need no second person were applied", w.change.Object,
				strings.Join(w.words(), ", "), err)
		}
		p.made[w.change.Object] = true
		if p.ids != nil {
			*p.ids = append(*p.ids, a.No())
		}
		how := "proposed " + a.No()
		if a.State != approval.Waiting {
			how = "changed by " + a.No() + ", decided alone"
		}
		for _, word := range w.words() {
			if _, err := fmt.Fprintln(p.env.Out, w.change.Object, word, how); err != nil {
				return fmt.Errorf("proposed as %s, but the report could not be written: %w", a.No(), err)
			}
		}
	}
	return nil
}

// one proposes one change, or finds an open proposal of the same change.
func (p *proposer) one(ctx context.Context, d *declaration, w wait) (*approval.Approval, error) {
	v, err := newValues(w.change, w.fields)
	if err != nil {
		return nil, err
	}
	x := decided{env: p.env, pending: &v, stored: d.stored}
	open, err := approval.List(ctx, p.env.DB, approval.Query{
		Object: ChangeObject, ObjectID: w.change.Object.String(),
		State: approval.Waiting, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if a.ExpiresAt <= p.env.DB.Now() {
			continue
		}
		is, err := x.sealed(ctx, p.env.DB, a.ID)
		if err != nil {
			return nil, err
		}
		if is.same(v) {
			return a, nil
		}
		return nil, fmt.Errorf("%s proposes a different change: approve or reject it first: %w", a.No(), approval.ErrProposed)
	}
	params, err := v.params(w.change, w.fields)
	if err != nil {
		return nil, err
	}
	desk, err := p.desk(d.stored, x.kind())
	if err != nil {
		return nil, err
	}
	a, err := desk.Propose(ctx, approval.Proposal{
		Action: changeAction, Object: ChangeObject, ObjectID: w.change.Object.String(), Params: params, Reason: p.reason, By: p.by,
	})
	var denied *act.Denied
	if errors.As(err, &denied) {
		err = fmt.Errorf("%s may not propose it: use a token of an operator of role %s: %w", p.by.Name, strings.Join(denied.Roles, ", "),
			err)
	}
	return a, err
}

// desk returns the approval desk, with the rules that were read.
func (p *proposer) desk(stored *settings.Stored, kind act.Kind) (*approval.Desk, error) {
	policy, err := access.NewPolicy()
	if err != nil {
		return nil, err
	}
	log := audit.New(p.env.DB, p.env.Keys)
	rules := stored.Approval().Rules()
	return approval.NewDesk(approval.Options{
		DB: p.env.DB, Audit: log, Policy: policy, Operators: access.NewOperators(p.env.DB, log), Life: p.env.Life,
		Rules: func() settings.Rules { return rules }, Log: slog.New(slog.DiscardHandler),
	}, kind), nil
}
