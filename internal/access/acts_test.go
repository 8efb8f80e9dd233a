package access

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

// Each change by a command leaves one act, without secrets; a refused or repeated one leaves
// none.
func TestCommandsLeaveTheirActs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, tokens := operatorsOf(t, d), NewTokens(d, sealtest.Ring(t, 1))
		secrets := []string{mustAdd(t, o, "li", Ops, ""), password}
		mustAdd(t, o, "boss", Admin, password)
		reset, err := o.ResetPassword(t.Context(), "li")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE operators SET signed_in_at = 1 WHERE name = 'li'").Exec(t.Context()); err != nil {
			t.Fatal(err) // the name of one who never came would be free again
		}
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		token, err := tokens.Add(t.Context(), "grafana", Monitor)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, reset, token)
		_, again := o.Add(t.Context(), "li", Ops, password)
		_, gone := o.ResetPassword(t.Context(), "li")
		_, twice := tokens.Add(t.Context(), "grafana", Monitor)
		for i, err := range []error{
			again, gone, o.Disable(t.Context(), "li"), o.Disable(t.Context(), "boss"), twice,
			tokens.Revoke(t.Context(), "nobody"),
		} {
			if err == nil {
				t.Errorf("refusal %d was none", i)
			}
		}
		for range 2 {
			if err := tokens.Revoke(t.Context(), "grafana"); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.ChangePassword(t.Context(), "boss", password, "another long password"); err != nil {
			t.Fatal(err) // the console records this act
		}

		var got []string
		acts, err := audit.List(t.Context(), d, audit.Query{Oldest: true, Limit: 99})
		for _, a := range acts {
			if a.Actor != audit.Command() {
				t.Errorf("%s by %q", a.Action, a.Actor)
			}
			for _, secret := range secrets {
				if strings.Contains(fmt.Sprint(a), secret) {
					t.Errorf("a secret is in %+v", a)
				}
			}
			got = append(got, fmt.Sprint(a.Action, " ", a.Object, " ", a.ObjectID, " ", a.Params))
		}
		want := []string{
			`operator.add operator li {"role":"ops"}`,
			`operator.add operator boss {"role":"admin"}`,
			`operator.reset_password operator li {"role":"ops"}`,
			`operator.disable operator li {"role":"ops"}`,
			`token.add token grafana {"scope":"monitor"}`,
			`token.revoke token grafana {"scope":"monitor"}`,
		}
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("acts, %v:\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
