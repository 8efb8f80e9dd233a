package apply

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// rotate rotates the signing secret of m1.
func rotate(t *testing.T, env Env, by act.Actor, key string) (secret string, repeated bool, err error) {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	acts := act.New(env.DB, audit.New(env.DB, env.Keys), policy, RotateActs(env)...)
	out, err := acts.Run(t.Context(), act.Call{Kind: RotateAct, By: by, Ref: act.Ref{ID: "m1"}, Reason: editReason, Key: key})
	if err != nil || out.Repeated {
		return "", out.Repeated, err
	}
	made, err := out.After(t.Context())
	return made.(string), false, err
}

func TestAMerchantRotatesItsSecretWithAnOverlap(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		m1 := load(t, env).ByCode("m1")
		first := signed(m1.Secrets[0])
		system := act.Actor{Name: "merchant:m1", Merchants: []int64{m1.ID}, OfMerchant: true}
		other := act.Actor{Name: "merchant:m2", Merchants: []int64{m1.ID + 1}, OfMerchant: true}
		if _, _, err := rotate(t, env, other, ""); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("of another merchant: %v", err)
		}
		second, _, err := rotate(t, env, system, "k-1")
		if err != nil {
			t.Fatal(err)
		}
		if now := load(t, env).ByCode("m1").Secrets; len(now) != 2 || signed(now[0]) != second || signed(now[1]) != first {
			t.Errorf("%d secrets sign after the first rotation", len(now))
		}
		if _, repeated, err := rotate(t, env, system, "k-1"); err != nil || !repeated {
			t.Errorf("the same request again: repeated is %t, %v", repeated, err)
		}
		if _, _, err := rotate(t, env, system, "k-2"); !errors.Is(err, ErrRotated) {
			t.Errorf("another one at once: %v", err)
		}
		if _, err := d.NewRaw("UPDATE setting_history SET at = at - ?", time.Hour.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		person := act.Actor{Name: "operator:mei", ID: 7, Roles: access.Merchant, Merchants: []int64{m1.ID}}
		unlimited := person
		unlimited.Merchants = nil
		if _, _, err := rotate(t, env, unlimited, ""); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("without a limit to merchants: %v", err)
		}
		third, _, err := rotate(t, env, person, "")
		if now := load(t, env).ByCode("m1").Secrets; err != nil || len(now) != 2 || signed(now[0]) != third || signed(now[1]) != second {
			t.Errorf("after the second rotation: %d secrets, %v", len(now), err)
		}
		all, err := audit.List(t.Context(), d, audit.Query{Limit: 9})
		if err != nil || all[0].Action != RotateAct || all[0].Actor != "operator:mei" || all[0].ObjectID != "m1" ||
			!strings.Contains(all[0].Params, "signing_secret") {
			t.Errorf("%+v, %v", all[0], err)
		}
		for _, row := range all {
			if strings.Contains(row.Params, second) || strings.Contains(row.Params, third) {
				t.Errorf("a secret is in the audit: %+v", row)
			}
		}
	})
}

func signed(secret []byte) string { return signingPrefix + base64.StdEncoding.EncodeToString(secret) }

// Where changes of secrets wait, a person cannot rotate alone; the merchant's own key is proof enough.
func TestARotationByAPersonNeedsNoSecondOneOnlyWhereNoneIsNeeded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		m1 := load(t, g.env).ByCode("m1")
		person := act.Actor{Name: "operator:mei", ID: 7, Roles: access.Merchant, Merchants: []int64{m1.ID}}
		if _, _, err := rotate(t, g.env, person, ""); !errors.Is(err, ErrRotationWaits) {
			t.Errorf("by a person: %v", err)
		}
		if _, _, err := rotate(t, g.env, act.Actor{Name: "merchant:m1", Merchants: []int64{m1.ID}, OfMerchant: true}, ""); err != nil {
			t.Errorf("by the merchant: %v", err)
		}
		if now := load(t, g.env).ByCode("m1").Secrets; len(now) != 2 {
			t.Errorf("%d secrets sign", len(now))
		}
	})
}
