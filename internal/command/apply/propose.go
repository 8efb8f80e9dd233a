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

// wait is a change of which some fields wait for a second person.
type wait struct {
	change settings.Change
	fields []string
}

// words are the fields of the entry that wait.
func (w wait) words() (words []string) {
	for _, at := range w.fields {
		word, _, _ := strings.Cut(at, ".")
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// split takes out of the changes what waits for a second person: where the rules say so and
// orders exist. The rules themselves wait without orders, too: else they could be switched
// off by one person.
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
	return d.check() // what is made at once stands alone
}

// waiting is what waits of an object; nil = nothing does.
func (d *declaration) waiting(o settings.Object) *wait {
	for i := range d.waits {
		if d.waits[i].change.Object == o {
			return &d.waits[i]
		}
	}
	return nil
}

// reported are the outcomes without those of objects of which all changes wait.
func (d *declaration) reported(outcomes []settings.Outcome) []settings.Outcome {
	return slices.DeleteFunc(outcomes, func(o settings.Outcome) bool { return o.What == settings.Unchanged && d.waiting(o.Object) != nil })
}

// maker is who proposes: the operator that As names, else the command.
func (e Env) maker(ctx context.Context) (by act.Actor, err error) {
	if e.As == "" {
		return act.Actor{Name: audit.Command()}, nil
	}
	all, err := access.Enabled(ctx, e.DB.Read)
	if err != nil {
		return by, err
	}
	for _, op := range all {
		if op.Name == e.As {
			return act.Actor{Name: "operator:" + op.Name, ID: op.ID, Role: op.Role}, nil
		}
	}
	return by, fmt.Errorf("--as %s: there is no enabled operator of that name", e.As)
}

// proposer makes the proposals of one file.
type proposer struct {
	env    Env
	by     act.Actor
	reason string
	made   map[settings.Object]bool // proposed, and reported
}

// propose makes a proposal of each entry that waits. It may be called again.
func (p *proposer) propose(ctx context.Context, d *declaration) error {
	for _, w := range d.waits {
		if p.made[w.change.Object] {
			continue
		}
		a, err := p.one(ctx, d, w)
		if err != nil {
			return fmt.Errorf("%s: %s: %w; what does not wait is applied", w.change.Object, strings.Join(w.words(), ", "), err)
		}
		p.made[w.change.Object] = true
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

// one proposes one change, or finds the proposal of the same.
func (p *proposer) one(ctx context.Context, d *declaration, w wait) (*approval.Approval, error) {
	v, err := newValues(w.change, w.fields)
	if err != nil {
		return nil, err
	}
	x := decided{env: p.env, pending: &v, stored: d.stored}
	open, err := approval.List(ctx, p.env.DB, approval.Query{Object: changeObject, ObjectID: w.change.Object.String(), State: approval.Waiting, Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if a.ExpiresAt <= p.env.DB.Now() {
			continue
		}
		is, err := x.sealed(ctx, p.env.DB, a)
		if err != nil {
			return nil, err
		}
		if is.same(v) {
			return a, nil
		}
		return nil, fmt.Errorf("%s proposes something else: it has to be approved or rejected first: %w", a.No(), approval.ErrProposed)
	}
	params, err := v.params(w.change, w.fields)
	if err != nil {
		return nil, err
	}
	desk, err := p.desk(d.stored, x.action())
	if err != nil {
		return nil, err
	}
	a, err := desk.Propose(ctx, approval.Proposal{
		Action: changeAction, Object: changeObject, ObjectID: w.change.Object.String(), Params: params, Reason: p.reason, By: p.by,
	})
	var denied *act.Denied
	if errors.As(err, &denied) {
		err = fmt.Errorf("operator %s may not propose it: --as names one of the roles %s: %w", p.env.As, strings.Join(denied.Roles, ", "), err)
	}
	return a, err
}

// desk is where proposals are made, under the rules that were read.
func (p *proposer) desk(stored *settings.Stored, action approval.Action) (*approval.Desk, error) {
	policy, err := access.NewPolicy()
	if err != nil {
		return nil, err
	}
	log := audit.New(p.env.DB, p.env.Keys)
	rules := stored.Approval().Rules()
	return approval.NewDesk(approval.Options{
		DB: p.env.DB, Audit: log, Policy: policy, Operators: access.NewOperators(p.env.DB, log), Life: p.env.Life,
		Rules: func() settings.Rules { return rules }, Log: slog.New(slog.DiscardHandler),
	}, action), nil
}
