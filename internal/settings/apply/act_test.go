package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// acts returns the params of all acts of a kind, oldest first. Each was done by this command to
// the same object.
func acts(t *testing.T, d *db.DB, action, object, id string) (all []map[string]string) {
	t.Helper()
	rows, err := audit.List(t.Context(), d, audit.Query{Oldest: true, Limit: 99})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Action != action {
			continue
		}
		params := map[string]string{}
		if err := json.Unmarshal([]byte(r.Params), &params); err != nil || r.Actor != audit.Command() || r.Object != object ||
			r.ObjectID != id {
			t.Errorf("%+v, %v", r, err)
		}
		for _, secret := range []string{"top-secret", keyM1, secretA, secretB} {
			if strings.Contains(r.Params, secret) {
				t.Errorf("a secret is in %s", r.Params)
			}
		}
		all = append(all, params)
	}
	return all
}

func TestWhatAFileChangesLeavesOneAct(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		mustApply(t, env, out, whole) // nothing changes
		if err := Apply(t.Context(), env, asFile(whole+"\nnonsense: 1\n")); err == nil {
			t.Fatal("an invalid file was applied")
		}
		second := strings.NewReplacer("kind: fake", "kind: fake\n    enabled: false", "key: top-secret", "key: other-top-secret",
			secretA, secretB, "SKU-1", "SKU-2").Replace(whole)
		mustApply(t, env, out, second)

		got := acts(t, d, "settings.apply", "file", asFile("").Name)
		sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
		want := []map[string]string{
			{"created": "supplier wx-main; merchant m1; sku SKU-1", "opened": "account m1 CNY: 1000000", "sha256": sum(whole)},
			{
				"created": "sku SKU-2", "changed": "supplier wx-main: enabled, config.key; merchant m1: signing_secret",
				"disabled": "supplier wx-main", "sha256": sum(second),
			},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("acts\n%v\nwant\n%v", got, want)
		}
	})
}

func TestTheActOfALargeFileIsShort(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	file := "skus:\n"
	for i := range 5000 {
		file += fmt.Sprintf("  - { sku: S-%d, stock: 1 }\n", i)
	}
	mustApply(t, env, out, file)
	got := acts(t, env.DB, "settings.apply", "file", asFile("").Name)
	if len(got) != 1 || len(got[0]["created"]) > 1000 || !strings.HasSuffix(got[0]["created"], "; sku S-19 … and 4980 more") {
		t.Errorf("acts %v", got)
	}
}

// Stock and opening balances are not settings that nodes read again, but they are money.
func TestAnOpeningBalanceAloneLeavesAnAct(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		mustApply(t, env, out, "accounts:\n  - { merchant: m1, currency: USD, balance: 700 }\n")
		if got := acts(t, d, "settings.apply", "file", asFile("").Name); len(got) != 2 || got[1]["opened"] != "account m1 USD: 700" {
			t.Errorf("acts %v", got)
		}
	})
}

func TestResealLeavesOneActWhereItChangesAnything(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		env.Keys = keyring(t, 2, 1)
		for range 2 {
			if _, err := Reseal(t.Context(), env, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := acts(t, d, "secrets.reseal", "master_key", env.Keys.ID()); len(got) != 1 {
			t.Errorf("acts %v, want one", got)
		}
	})
}
