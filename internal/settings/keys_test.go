package settings_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/settings"
)

// ring holds keys by their numbers, the current one first.
func ring(t *testing.T, numbers ...byte) *seal.Keyring {
	t.Helper()
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		keys[i] = bytes.Repeat([]byte{n}, 32)
	}
	k, err := seal.NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sealed stores a supplier whose key is sealed under the first of the keys.
func sealed(t *testing.T, d *db.DB, code string, keys *seal.Keyring) {
	t.Helper()
	text := keys.Seal(seal.Place{Table: "suppliers", Row: code, Field: "config.key"}, []byte("s3cret"))
	id := d.NewID()
	for _, q := range []struct {
		text string
		args []any
	}{
		{"INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", []any{id, code}},
		{
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (?0, ?1, 'x', ?0, TRUE, '[]', ?2, 1, 1)",
			[]any{id, code, `{"key":"` + text + `"}`},
		},
	} {
		if _, err := d.NewRaw(q.text, q.args...).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func wantInUse(t *testing.T, d *db.DB, keys *seal.Keyring) {
	t.Helper()
	if id, err := settings.KeyInUse(t.Context(), d.Read); err != nil || id != keys.ID() {
		t.Errorf("in use is %q, %v; want %s", id, err, keys.ID())
	}
}

func TestTheFirstKeyIsKeptAndEachOtherRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one, two := ring(t, 1), ring(t, 2)
		if err := settings.CheckKeys(t.Context(), d, two); err != nil {
			t.Errorf("before there is one: %v", err)
		}
		if _, err := settings.UseKeys(t.Context(), d, one); err != nil {
			t.Fatal(err)
		}
		wantInUse(t, d, one)
		_, err := settings.UseKeys(t.Context(), d, two)
		if !errors.Is(err, settings.ErrForeignKey) || !strings.Contains(err.Error(), one.ID()) || !strings.Contains(err.Error(), two.ID()) {
			t.Errorf("another key returned %v", err)
		}
		if err := settings.CheckKeys(t.Context(), d, two); !errors.Is(err, settings.ErrForeignKey) {
			t.Errorf("a running node with another key returned %v", err)
		}
		// Anywhere in the list is enough, and what is new is sealed under it.
		both, err := settings.UseKeys(t.Context(), d, ring(t, 2, 1))
		if err != nil || both.ID() != one.ID() || settings.CheckKeys(t.Context(), d, ring(t, 2, 1)) != nil {
			t.Errorf("with both keys: seals under %v, %v", both, err)
		}
	})
}

func TestTwoThatStartAtOnceAgreeOnOneKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				errs[i] = dbtest.Repeat(func() error { _, err := settings.UseKeys(t.Context(), d, ring(t, byte(1+i%2))); return err })
			})
		}
		wg.Wait()
		refused := 0
		for _, err := range errs {
			if errors.Is(err, settings.ErrForeignKey) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != len(errs)/2 {
			t.Errorf("%d of %d refused: %v", refused, len(errs), errs)
		}
	})
}

// An older database has secrets and no key in use.
func TestADatabaseOfBeforeTakesTheKeyThatOpensIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one := ring(t, 1)
		sealed(t, d, "s1", one)
		if _, err := settings.UseKeys(t.Context(), d, ring(t, 2)); !errors.Is(err, settings.ErrForeignKey) ||
			!strings.Contains(err.Error(), one.ID()) {
			t.Errorf("a key that opens nothing returned %v", err)
		}
		if id, err := settings.KeyInUse(t.Context(), d.Read); err != nil || id != "" {
			t.Errorf("and stored is %q, %v", id, err)
		}
		if _, err := settings.UseKeys(t.Context(), d, ring(t, 2, 1)); err != nil {
			t.Fatal(err)
		}
		wantInUse(t, d, one)
	})
}

func TestOnlyResealChangesTheKeyInUse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one, two := ring(t, 1), ring(t, 2)
		if _, err := settings.UseKeys(t.Context(), d, one); err != nil {
			t.Fatal(err)
		}
		may := func(keys *seal.Keyring, yes bool, when string) {
			t.Helper()
			if err := settings.CheckReseal(t.Context(), d, keys); (err == nil) != yes || err != nil &&
				!errors.Is(err, settings.ErrForeignKey) {
				t.Errorf("%s: %v", when, err)
			}
		}
		may(two, true, "nothing is sealed yet")
		sealed(t, d, "s1", one)
		may(two, false, "all is sealed under a key that is not held")
		may(ring(t, 2, 1), true, "both keys are held")
		sealed(t, d, "s2", two)
		may(two, false, "a part opens, and what is under the key in use does not")
		// What an older version resealed does not change the key in use.
		if _, err := d.NewRaw("DELETE FROM suppliers WHERE code = 's1'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		may(two, true, "nothing is left under the key in use")

		change := func() (changed bool) {
			t.Helper()
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				changed, err = settings.ChangeKey(ctx, tx, d, ring(t, 2, 1))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return changed
		}
		if !change() || change() {
			t.Error("it does not change once")
		}
		wantInUse(t, d, two)
		if err := settings.CheckKeys(t.Context(), d, one); !errors.Is(err, settings.ErrForeignKey) {
			t.Errorf("a node with the older key alone returned %v", err)
		}
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.ConfirmKey(ctx, tx, one) })
		if !errors.Is(err, settings.ErrKeyChanged) {
			t.Errorf("what is sealed under the older key would be written: %v", err)
		}
	})
}
