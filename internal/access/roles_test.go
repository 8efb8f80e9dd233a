package access

import (
	"errors"
	"testing"
)

func TestUnknownRolesAreNoRole(t *testing.T) {
	t.Parallel()
	for _, role := range append([]string{""}, AllRoles...) {
		if Roles("").Has(role) || Roles("").HasAny(role) {
			t.Errorf("unknown roles have %q", role)
		}
		if Roles("root").Has(role) || Roles("LEAD").Has(role) {
			t.Errorf("another text has %q", role)
		}
	}
	if Roles(Lead).Has("") || RolesOf() != "" || RolesOf().Names() != nil {
		t.Error("there is a role without a name")
	}
}

func TestRolesAreASet(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Roles{
		"ops": "ops", "ops,finance": "finance,ops", " ops , finance ,ops": "finance,ops",
	} {
		got, err := ParseRoles(text)
		if got != want || err != nil || got != RolesOf(got.Names()...) {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
		for _, role := range append([]string{""}, AllRoles...) {
			if is := role == Ops || role == Finance && want != "ops"; got.Has(role) != is || got.HasAny(role, "root") != is {
				t.Errorf("%q has %q: %t", text, role, got.Has(role))
			}
		}
	}
	for _, text := range []string{"", ",", "ops,", "OPS", "ops finance"} {
		if got, err := ParseRoles(text); !errors.Is(err, ErrRole) || got != "" {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
}
