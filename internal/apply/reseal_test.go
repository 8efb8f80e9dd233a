package apply

import (
	"strings"
	"testing"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"
)

func TestResealBringsAllSecretsUnderTheCurrentKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)

		env.Keys = keyring(t, 2, 1) // a new key in front of the old one
		looked := 0
		n, err := Reseal(t.Context(), env, func(n int) { looked = n })
		if err != nil || n != 2 || looked != 2 {
			t.Fatalf("resealed %d of %d, %v, want 2 of 2", n, looked, err)
		}
		if n, err := Reseal(t.Context(), env, nil); err != nil || n != 0 {
			t.Errorf("resealed %d again, %v", n, err)
		}
		env.Keys = keyring(t, 2) // the old key is gone
		wantLines(t, mustApply(t, env, out, whole), "supplier wx-main unchanged", "merchant m1 unchanged", "sku SKU-1 unchanged", "account m1 CNY unchanged")
	})
}

func TestResealGoesOnPastWhatDoesNotOpen(t *testing.T) {
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
