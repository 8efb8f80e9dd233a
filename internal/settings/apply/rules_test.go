package apply

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

const rules = `
approval:
  second_person: false
  typed_above: [{ currency: CNY, amount: 100000 }]
  second_above: [{ currency: CNY, amount: 500, batch_rows: 7 }]
`

// rulesOf returns the rules as a node reads them.
func rulesOf(t *testing.T, env Env) settings.Rules {
	t.Helper()
	store := settings.NewStore(env.DB, kinds, env.Keys, slog.New(slog.DiscardHandler))
	if !reflect.DeepEqual(store.Rules(), settings.DefaultRules()) {
		t.Error("a node that has read nothing has other rules than the defaults")
	}
	if err := store.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.Rules()
}

func TestTheRulesOfDecisionsAreApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		none := rulesOf(t, env)
		if !none.SecondPerson || none.Apply || !none.NeedsTyping(1, "CNY") ||
			none.Limits("CNY") != (settings.Above{BatchAmount: 1_000_000, BatchRows: 200}) {
			t.Errorf("the defaults are %+v", none)
		}
		wantLines(t, mustApply(t, env, out, "approval: { second_person: true }"), "approval unchanged")
		wantLines(t, mustApply(t, env, out, rules), "approval changed: second_person, typed_above, second_above")
		wantLines(t, mustApply(t, env, out, rules), "approval unchanged")
		is := rulesOf(t, env)
		if is.SecondPerson || is.Apply || is.NeedsTyping(100_000, "CNY") || !is.NeedsTyping(100_001, "CNY") || !is.NeedsTyping(1, "USD") {
			t.Errorf("rules %+v", is)
		}
		if is.Limits("CNY") != (settings.Above{Amount: 500, BatchAmount: 1_000_000, BatchRows: 7}) ||
			is.Limits("USD") != none.Limits("USD") {
			t.Errorf("limits %+v", is.Above)
		}
		// A field that a file leaves out stays; null is the default.
		wantLines(t, mustApply(t, env, out, "approval: { typed_above: null, second_person: true }"),
			"approval changed: second_person, typed_above")
		if is := rulesOf(t, env); !is.SecondPerson || len(is.Typed) != 0 || is.Limits("CNY").Amount != 500 {
			t.Errorf("rules %+v", is)
		}
	})
}

func TestAChangeOfTheRulesLeavesOldAndNewInTheAudit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, rules)
		mustApply(t, env, out, "approval: { typed_above: [] }")
		mustApply(t, env, out, "skus: [{ sku: a, stock: 1 }]")
		rows, err := audit.List(t.Context(), d, audit.Query{Oldest: true, Limit: 9})
		if err != nil || len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, want := range []map[string]string{
			{
				"old": "second_person: true; typed_above: []; second_above: []",
				"new": "second_person: false; typed_above: [{currency: CNY, amount: 100000}]; second_above: [{currency: CNY, amount: 500, batch_amount: 1000000, batch_rows: 7}]",
			},
			{"old": "typed_above: [{currency: CNY, amount: 100000}]", "new": "typed_above: []"},
		} {
			is := map[string]string{}
			if err := json.Unmarshal([]byte(rows[i].Params), &is); err != nil || is["old"] != want["old"] || is["new"] != want["new"] {
				t.Errorf("%s, %v", rows[i].Params, err)
			}
		}
		if strings.Contains(rows[2].Params, "second_person") {
			t.Errorf("what did not change: %s", rows[2].Params)
		}
	})
}

func TestADryRunShowsTheRules(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	if !differs(t, env, out, asFile(rules)) {
		t.Error("nothing differs")
	}
	wantLines(t, strings.Split(strings.TrimSpace(out.String()), "\n"), "approval changed",
		"  second_person: true → false", "  typed_above: [] → [{currency: CNY, amount: 100000}]",
		"  second_above: [] → [{currency: CNY, amount: 500, batch_amount: 1000000, batch_rows: 7}]")
}

// Rules that cannot be read need two people for everything, and can be repaired.
func TestRulesThatCannotBeReadAreTheStrictest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, rules)
		if _, err := d.NewRaw("UPDATE approval_rules SET rules = '{'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := rulesOf(t, env); !is.SecondPerson || !is.Apply || !is.NeedsTyping(1, "CNY") || is.Limits("CNY").Amount != 0 {
			t.Errorf("rules %+v", is)
		}
	})
}
