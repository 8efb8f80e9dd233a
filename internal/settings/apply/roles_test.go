package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

const (
	nightRole     = "roles:\n  - { name: night, may: [order.view, notification.resend] }\n"
	goodPassword  = "a long enough password"
	nightDisabled = "roles:\n  - { name: night, enabled: false }\n"
)

// granted returns the policy of a node that reads the settings now.
func granted(t *testing.T, env Env) *access.Policy {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	store := settings.NewStore(env.DB, env.Kinds, env.Keys, nil)
	store.GrantTo(policy)
	if err := store.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return policy
}

func operatorsOf(env Env) *access.Operators {
	return access.NewOperators(env.DB, audit.New(env.DB, env.Keys))
}

func TestAnOwnRoleGrantsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		if _, err := operatorsOf(env).Add(t.Context(), "li", "night", goodPassword); !errors.Is(err, access.ErrRole) {
			t.Errorf("a role that there is not: %v", err)
		}
		wantLines(t, mustApply(t, env, out, nightRole), "role night created")
		wantLines(t, mustApply(t, env, out, nightRole), "role night unchanged")
		policy := granted(t, env)
		want := []access.Permission{access.UseAccount, access.ViewOrders, access.Resend}
		if got := policy.Of("night"); !slices.Equal(got, want) {
			t.Errorf("it may %q", got)
		}
		if roles := policy.RolesWith(access.Resend); roles[len(roles)-1] != "night" || !policy.Allows("night,viewer", access.ViewCallbacks) {
			t.Errorf("roles that may resend: %q", roles)
		}
		if _, err := operatorsOf(env).Add(t.Context(), "li", "viewer,night", goodPassword); err != nil {
			t.Fatal(err)
		}
		wantLines(t, mustApply(t, env, out, "roles:\n  - { name: night, may: [order.view] }\n"), "role night changed: may")
		if policy := granted(t, env); policy.Allows("night", access.Resend) || !policy.Allows("night", access.ViewOrders) {
			t.Errorf("it may %q", policy.Of("night"))
		}
		rows, err := settings.History(t.Context(), d, settings.Object{Kind: "role", ID: "night"}, 0, 9)
		if err != nil || len(rows) != 2 || rows[0].Old != "[order.view, notification.resend]" || rows[0].New != "[order.view]" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

func TestARoleThatSomebodyHasStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, nightRole)
		o := operatorsOf(env)
		for _, name := range []string{"li", "bo"} {
			if _, err := o.Add(t.Context(), name, "night", goodPassword); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Disable(t.Context(), "bo"); err != nil {
			t.Fatal(err)
		}
		err := Apply(t.Context(), env, asFile(nightDisabled))
		if err == nil || !strings.Contains(err.Error(), "roles[0].enabled: li still has it: give them another role first") {
			t.Errorf("%v", err)
		}
		if err := o.SetRoles(t.Context(), "li", access.Viewer); err != nil {
			t.Fatal(err)
		}
		wantLines(t, mustApply(t, env, out, nightDisabled), "role night changed: enabled")
		if policy := granted(t, env); len(policy.Of("night")) > 0 || slices.Contains(policy.Roles(), "night") {
			t.Errorf("a disabled role may %q", policy.Of("night"))
		}
		if err := o.SetRoles(t.Context(), "li", "night"); !errors.Is(err, access.ErrRole) {
			t.Errorf("a disabled role is given: %v", err)
		}
		id := access.Identity{Issuer: "https://id.example", Subject: "s", Name: "zhao", Roles: "night"}
		if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, access.ErrNoRole) {
			t.Errorf("a disabled role by the provider: %v", err)
		}
		id.Roles = "night,viewer"
		if op, err := o.SignInAs(t.Context(), id, ""); err != nil || op.Roles != access.Viewer {
			t.Errorf("beside another role: %+v, %v", op, err)
		}
	})
}

// Whoever disables a role and whoever gives it never both succeed.
func TestARoleIsNotGivenWhileItIsDisabled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		o := operatorsOf(env)
		if _, err := o.Add(t.Context(), "li", access.Viewer, goodPassword); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			mustApply(t, env, out, "roles:\n  - { name: night, may: [order.view], enabled: true }\n")
			if err := o.SetRoles(t.Context(), "li", access.Viewer); err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			both.Go(func() {
				err := dbtest.Repeat(func() error { return o.SetRoles(t.Context(), "li", "night") })
				if err != nil && !errors.Is(err, access.ErrRole) {
					t.Error(err)
				}
			})
			both.Go(func() {
				var invalid *Invalid
				if err := Apply(t.Context(), env, asFile(nightDisabled)); err != nil && !errors.As(err, &invalid) {
					t.Error(err)
				}
			})
			both.Wait()
			op, err := access.Named(t.Context(), d, "li")
			if err != nil {
				t.Fatal(err)
			}
			if op.Roles == "night" && len(granted(t, env).Of("night")) == 0 {
				t.Fatal("li has a role that is disabled")
			}
		}
	})
}

func TestWrongRolesAreRefusedByTheirField(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, dbtest.SQLite(t))
	for entry, want := range map[string]string{
		"{ name: lead, may: [order.view] }":                    "roles[0].name: lead is a built-in role: choose another name",
		"{ may: [order.view] }":                                "roles[0].name: missing",
		"{ name: Night Shift }":                                `roles[0].name: "Night Shift": use 1 to 64 of a-z`,
		"{ name: night, may: [order.eat] }":                    `roles[0].may[0]: "order.eat" is not known; use account.use or overview.view`,
		"{ name: night, may: [order.view, operator.manage] }":  "roles[0].may[1]: only built-in roles have operator.manage",
		"{ name: night, may: [settings.approve] }":             "roles[0].may[0]: only built-in roles have settings.approve",
		"{ name: night, may: [order.view, order.view] }":       "roles[0].may[1]: the same as in roles[0].may[0]",
		"{ name: night, permissions: [] }":                     "unknown field; known fields are name, may, enabled",
		"{ name: night }\n  - { name: night, enabled: false }": "roles[1].name: the same as in roles[0].name",
	} {
		err := Apply(t.Context(), env, asFile("roles:\n  - "+entry+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
		var invalid *Invalid
		if errors.As(err, &invalid) && Say(invalid.Fields[0].Text).ZH == invalid.Fields[0].Text {
			t.Errorf("%q is in English alone", invalid.Fields[0].Text)
		}
	}
}

// Nobody widens a role of their own, however many others they have.
func TestNobodyChangesARoleOfTheirOwn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, nightRole)
		e := Edit{Object: settings.Object{Kind: "role", ID: "night"}, Entry: fmt.Sprintf("may: [%s]", access.ApproveMoney)}
		by := act.Actor{Name: "operator:ada", ID: 3, Roles: access.RolesOf(access.Admin, "night")}
		if _, err := edit(t, env, by, e); !errors.Is(err, access.ErrSelf) {
			t.Errorf("the own role: %v", err)
		}
		if _, err := edit(t, env, admin, e); err != nil || !granted(t, env).Allows("night", access.ApproveMoney) {
			t.Errorf("the role of others: %v", err)
		}
	})
}
