package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

func TestAPersonalTokenIsItsOperatorUntilItEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, p := operatorsOf(t, d), NewPersonalTokens(d, sealtest.Ring(t, 1))
		mustAdd(t, o, "li", Lead, password)
		mustAdd(t, o, "wang", Lead, password)
		add := func(name string) string {
			t.Helper()
			key, err := p.Add(t.Context(), name, time.Hour)
			if err != nil || !strings.HasPrefix(key, "bso_") {
				t.Fatalf("%q, %v", key, err)
			}
			return key
		}
		is := func(key, want string) {
			t.Helper()
			op, err := p.Find(t.Context(), key)
			if want == "" && !errors.Is(err, ErrSession) || want != "" && (err != nil || op.Name+" "+string(op.Roles) != want) {
				t.Errorf("it is %+v, %v; want %q", op, err, want)
			}
		}
		first, second, other := add("li"), add("li"), add("wang")
		is(first, "li lead")
		is(second, "li lead")
		is(other, "wang lead")
		is("bso_"+strings.Repeat("a", len(first)-4), "")
		is(strings.Replace(first, "bso_", "bst_", 1), "")
		if err := o.SetRoles(t.Context(), "li", Ops); err != nil {
			t.Fatal(err)
		}
		is(first, "li ops")
		if err := p.Revoke(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		is(first, "")
		is(second, "")
		is(other, "wang lead")
		third := add("li")
		if _, err := d.NewRaw("UPDATE operator_tokens SET expires_at = ? WHERE operator_id = (SELECT id FROM operators WHERE name = 'li')",
			d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		is(third, "")
		fourth := add("li")
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		is(fourth, "")
		for _, c := range []struct {
			name string
			life time.Duration
			want error
		}{{"li", time.Hour, ErrDisabled}, {"nobody", time.Hour, ErrNotFound}, {"wang", 0, ErrLife}, {"wang", 9000 * time.Hour, ErrLife}} {
			if _, err := p.Add(t.Context(), c.name, c.life); !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		var stored string
		if err := d.NewRaw("SELECT token_hash FROM operator_tokens LIMIT 1").Scan(t.Context(), &stored); err != nil ||
			strings.Contains(other, stored) || strings.Contains(stored, "bso_") {
			t.Errorf("stored is %q, %v", stored, err)
		}
	})
}

// Without a lead nobody could approve anything, so the last one must stay.
func TestTheLastLeadStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		mustAdd(t, o, "li", Lead, password)
		mustAdd(t, o, "fang", Finance, password)
		if err := o.SetRoles(t.Context(), "li", Lead); err != nil { // nothing changes
			t.Error(err)
		}
		for what, err := range map[string]error{"disabled": o.Disable(t.Context(), "li"), "demoted": o.SetRoles(t.Context(), "li",
			Finance)} {
			if !errors.Is(err, ErrLastApprover) || !strings.Contains(err.Error(), "operator add") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := o.SetRoles(t.Context(), "li", "boss"); !errors.Is(err, ErrRole) {
			t.Errorf("a role that there is not: %v", err)
		}
		if err := o.SetRoles(t.Context(), "fang", Lead); err != nil {
			t.Fatal(err)
		}
		if err := o.SetRoles(t.Context(), "li", Finance); err != nil {
			t.Errorf("with another lead: %v", err)
		}
		if err := o.Disable(t.Context(), "fang"); !errors.Is(err, ErrLastApprover) {
			t.Errorf("the other one is the last now: %v", err)
		}
	})
}
