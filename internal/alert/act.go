package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Audit names of the acts.
const (
	RuleAct = "alert.rule"
	TestAct = "alert.test"
)

// Acts returns two acts: change the rule named by Ref.ID, and send a test message to every
// target. targets returns the names of the targets and the style of messages. Errors: ErrRule,
// ErrNoTarget.
func Acts(d *db.DB, targets func() ([]string, Style)) []act.Kind {
	return []act.Kind{
		{
			Name: RuleAct, Object: "alert_rule", Permission: access.ConfigureAlerts, Params: act.ParamsOf[ruleParams](), Load: loadRules,
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				outs := make([]act.Outcome, len(subjects))
				for i, s := range subjects {
					is := s.Value.(Rule)
					to, err := in.Params.(ruleParams).on(is)
					if err == nil {
						outs[i].Details = difference(is, to)
						err = Save(ctx, tx, d, to)
					}
					if err != nil && !errors.Is(err, ErrRule) && !errors.Is(err, act.ErrChanged) {
						return nil, err
					}
					outs[i].Err = err
				}
				return outs, nil
			},
		},
		{
			Name: TestAct, Object: "alert", Permission: access.TestAlerts, // Ref.ID is "test"
			Load: func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
				return []act.Subject{{ID: refs[0].ID}}, nil
			},
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				names, style := targets()
				_, sender, _ := strings.Cut(in.By.Name, ":")
				_, err := Try(ctx, tx, d, names, style, sender)
				return []act.Outcome{{Details: map[string]any{"targets": len(names)}}}, err
			},
		},
	}
}

// ruleParams is the new state of a rule, as operators write it; empty fields stay as they are.
type ruleParams struct {
	Enabled bool   `json:"enabled"`
	Fire    string `json:"fire"` // in the rule's Unit, like the levels that pages show
	Clear   string `json:"clear"`
	Hold    string `json:"hold"` // seconds
	Quiet   string `json:"quiet"`
	Window  string `json:"window"`
}

// on applies the parameters to a rule. Its error is an ErrRule.
func (p ruleParams) on(r Rule) (Rule, error) {
	r.Enabled = p.Enabled
	for _, t := range []struct {
		name, text string
		to         *int64
	}{{"hold", p.Hold, &r.HoldS}, {"quiet", p.Quiet, &r.QuietS}, {"window", p.Window, &r.WindowS}} {
		if t.text == "" {
			continue
		}
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("%w: %s is not a number of seconds", ErrRule, t.name)
		}
		*t.to = n
	}
	if !r.Watches() {
		return r, nil
	}
	var err error
	if r.Fire, err = Read(r.Name, p.Fire); err == nil {
		r.Clear, err = Read(r.Name, p.Clear)
	}
	return r, err
}

// difference returns the old and new values of a rule's changed fields, by name.
func difference(is, to Rule) map[string]any {
	d := map[string]any{}
	for _, f := range []struct {
		name    string
		is, was any
	}{
		{"enabled", to.Enabled, is.Enabled},
		{"fire", to.Fire, is.Fire},
		{"clear", to.Clear, is.Clear},
		{"hold_s", to.HoldS, is.HoldS},
		{"quiet_s", to.QuietS, is.QuietS},
		{"window_s", to.WindowS, is.WindowS},
	} {
		if f.is != f.was {
			d[f.name] = []any{f.was, f.is}
		}
	}
	return d
}

func loadRules(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rules, err := Rules(ctx, q)
	if err != nil {
		return nil, err
	}
	var subjects []act.Subject
	for _, r := range rules {
		if slices.ContainsFunc(refs, func(x act.Ref) bool { return x.ID == r.Name }) {
			subjects = append(subjects, act.Subject{ID: r.Name, Version: r.UpdatedAt, Value: r})
		}
	}
	return subjects, nil
}
