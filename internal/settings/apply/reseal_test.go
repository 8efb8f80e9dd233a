package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/settings"

	"github.com/pquerna/otp/totp"
)

func TestResealBringsAllSecretsUnderTheCurrentKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)

		env.Keys = keyring(t, 2, 1) // a new key before the old one
		looked := 0
		n, err := Reseal(t.Context(), env, func(n int) { looked = n })
		if err != nil || n != 2 || looked != 2 {
			t.Fatalf("resealed %d of %d, %v, want 2 of 2", n, looked, err)
		}
		if n, err := Reseal(t.Context(), env, nil); err != nil || n != 0 {
			t.Errorf("resealed %d again, %v", n, err)
		}
		env.Keys = keyring(t, 2) // the old key is gone
		wantLines(t, mustApply(t, env, out, whole), "supplier wx-main unchanged", "merchant m1 unchanged", "sku SKU-1 unchanged",
			"account m1 CNY unchanged")
	})
}

// A second factor works on after the master key under which it was set up is gone.
func TestResealBringsSecondFactorsUnderTheCurrentKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, _ := newEnv(t, d)
		for _, name := range []string{"li", "bo"} { // bo has none
			if _, err := access.NewOperators(d, audit.New(d, env.Keys)).Add(t.Context(), name, access.Lead, "correct horse battery"); err != nil {
				t.Fatal(err)
			}
		}
		op := func() *access.Operator {
			row, err := access.Named(t.Context(), d, "li")
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		code := func(secret string, at time.Time) string {
			code, err := totp.GenerateCode(secret, at)
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		old := access.NewSecondFactors(d, env.Keys)
		offer, err := old.Offer(op(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.SetUp(t.Context(), op(), "", offer.Sealed, code(offer.Secret, d.NowTime().Add(-30*time.Second)),
			func(context.Context, db.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := access.NewSecondFactors(d, keyring(t, 2)).Give(t.Context(), op(), "", code(offer.Secret, d.NowTime())); err == nil {
			t.Error("the control: the secret opens without its key")
		}
		env.Keys = keyring(t, 2, 1)
		if n, err := Reseal(t.Context(), env, nil); err != nil || n != 1 {
			t.Fatalf("resealed %d, %v", n, err)
		}
		if _, err := access.NewSecondFactors(d, keyring(t, 2)).Give(t.Context(), op(), "", code(offer.Secret, d.NowTime())); err != nil {
			t.Errorf("the code after the rotation: %v", err)
		}
	})
}

// Rows written under a master key can be verified after its removal, over two rotations.
func TestResealKeepsWhatTheAuditNeedsOfAnOldKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		broken := func(keys *seal.Keyring) (all []string) {
			keys, err := settings.WithRetired(t.Context(), d, keys)
			if err == nil {
				_, err = audit.New(d, keys).Verify(t.Context(), d.Read, func(b audit.Break) { all = append(all, b.String()) }, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if got := broken(keyring(t, 2)); len(got) != 1 || !strings.Contains(got[0], "key needed") {
			t.Fatalf("the control: %q", got)
		}
		token, err := access.NewTokens(d, env.Keys).Add(t.Context(), "grafana", access.Monitor)
		if err != nil {
			t.Fatal(err)
		}
		for _, rotation := range [][]byte{{2, 1}, {3, 2}} {
			env.Keys = keyring(t, rotation...)
			for range 2 {
				if _, err := Reseal(t.Context(), env, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := broken(keyring(t, rotation[0])); len(got) > 0 {
				t.Errorf("after the rotation to key %d: %q", rotation[0], got)
			}
		}
		keys, err := settings.WithRetired(t.Context(), d, keyring(t, 3))
		if err != nil || !access.NewTokens(d, keys).MayBe(token) {
			t.Errorf("a service's token of two keys before is refused: %v", err)
		}
		env.Keys = keyring(t, 4, 7) // the key between is lost: the error says so, and nothing is overwritten
		if _, err := Reseal(t.Context(), env, nil); !errors.Is(err, settings.ErrForeignKey) {
			t.Errorf("without the key in use: %v", err)
		}
		if got := broken(keyring(t, 3)); len(got) > 0 {
			t.Errorf("after that: %q", got)
		}
	})
}

func TestResealGoesOnPastWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		other := env
		other.Keys = keyring(t, 7)
		mustApply(t, other, out, strings.ReplaceAll(whole, "wx-main", "ali-main"))

		env.Keys = keyring(t, 2, 1)
		n, err := Reseal(t.Context(), env, nil)
		if err == nil || !strings.Contains(err.Error(), "supplier ali-main") || strings.Contains(err.Error(), "wx-main") {
			t.Errorf("err = %v, want the one row that does not open", err)
		}
		if n != 1 {
			t.Errorf("resealed %d rows, want the supplier whose secrets open", n)
		}
	})
}
