package alert

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

func TestARuleIsChangedByCompareAndSet(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		var targets []string
		acts := act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy,
			Acts(d, func() ([]string, Style) { return targets, Style{Language: "en", Zone: time.UTC} })...)
		run := func(name, id, params string, version int64) error {
			_, err := acts.Run(t.Context(), act.Call{
				Kind: name, By: act.Actor{Name: "operator:li", Roles: access.Admin}, Ref: act.Ref{ID: id}, Params: json.RawMessage(params),
				Reason: "as agreed on the phone", Version: version,
			})
			return err
		}
		rule := func() (r Rule) {
			t.Helper()
			rules, err := Rules(t.Context(), d.Read)
			if err != nil {
				t.Fatal(err)
			}
			return rules[1] // SuccessRate
		}
		for params, want := range map[string]error{
			`{"enabled":true,"fire":"90","clear":"80"}`:              ErrRule,
			`{"enabled":true,"fire":"90","clear":"93","hold":"x"}`:   ErrRule,
			`{"enabled":true,"fire":"NaN","clear":"93"}`:             ErrRule,
			`{"enabled":true,"fire":"","clear":"93","window":"600"}`: ErrRule,
		} {
			if err := run(RuleAct, SuccessRate, params, 0); !errors.Is(err, want) {
				t.Errorf("%s: %v", params, err)
			}
		}
		if err := run(RuleAct, "nothing", `{}`, 0); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("of no rule: %v", err)
		}
		before := rule()
		if err := run(RuleAct, SuccessRate, `{"enabled":true,"fire":"90.5","clear":"93"}`, 0); err != nil {
			t.Fatal(err)
		}
		now := rule()
		if now.Fire != 9050 || now.Clear != 9300 || now.HoldS != before.HoldS {
			t.Errorf("stored as %+v", now)
		}
		before.Fire = 8000 // by an operator with an outdated view of the rule
		if err := Save(t.Context(), d, d, before); !errors.Is(err, act.ErrChanged) || rule() != now {
			t.Errorf("over another operator's change: %v, %+v", err, rule())
		}
		if err := run(RuleAct, SuccessRate, `{"fire":"90.5","clear":"93"}`, now.UpdatedAt+1); !errors.Is(err, act.ErrChanged) {
			t.Errorf("by another version: %v", err)
		}
		if err := run(RuleAct, SuccessRate, `{"fire":"90.5","clear":"93"}`, now.UpdatedAt); err != nil || rule().Enabled {
			t.Errorf("turned off: %v, %+v", err, rule())
		}
		if err := run(TestAct, "test", "", 0); !errors.Is(err, ErrNoTarget) {
			t.Errorf("without targets: %v", err)
		}
		targets = []string{"a", "b"}
		if err := run(TestAct, "test", "", 0); err != nil {
			t.Error(err)
		}
		messages, err := Messages(t.Context(), d.Read, 0, 9)
		if err != nil || len(messages) != 2 || !strings.Contains(messages[0].Body, "li") ||
			strings.Contains(messages[0].Body, "operator:") {
			t.Errorf("written %+v, %v", messages, err)
		}
		rows, err := audit.List(t.Context(), d.Read, audit.Query{Oldest: true, Limit: 9})
		if err != nil || len(rows) != 3 || rows[0].Params != `{"clear":[9700,9300],"fire":[9500,9050],"reason":"as agreed on the phone"}` ||
			rows[0].ObjectID != SuccessRate || rows[2].ObjectID != "test" {
			t.Errorf("kept %+v, %v", rows, err)
		}
	})
}
