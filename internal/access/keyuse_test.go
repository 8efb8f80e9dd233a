package access

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
)

// A key that is used is written once an hour, however often it is used, and a new key was never used.
func TestTheUseOfAKeyIsWrittenOnceAnHour(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const old, replaced = "sk_live_old", "sk_live_new"
		if _, err := d.NewRaw("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at)"+
			" VALUES (1, 'm1', '', ?, '[]', '{}', 0, 0)", seal.HashToken(old)).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		uses := NewKeyUses(d)
		use := func(uses *KeyUses) MerchantKeys {
			t.Helper()
			if err := uses.Note(t.Context(), seal.HashToken(old)); err != nil {
				t.Fatal(err)
			}
			k, err := MerchantKeysOf(t.Context(), d.Read, "m1")
			if err != nil || !k.API.Set || k.API.UsedAt == nil || k.Payout != (KeyUse{}) {
				t.Fatalf("%+v, %v", k, err)
			}
			return k
		}
		earlier := d.Now() - 2*time.Hour.Microseconds()
		set := func() {
			t.Helper()
			if _, err := d.NewRaw("UPDATE key_uses SET used_at = ?", earlier).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if first := use(uses); *first.API.UsedAt < d.Now()-time.Minute.Microseconds() {
			t.Errorf("used at %d", *first.API.UsedAt)
		}
		set()
		if again := use(uses); *again.API.UsedAt != earlier {
			t.Error("it is written again within the hour")
		}
		uses.noted[seal.HashToken(old)] = earlier
		if later := use(uses); *later.API.UsedAt == earlier {
			t.Error("it is not written after an hour")
		}
		set()
		if started := use(NewKeyUses(d)); *started.API.UsedAt == earlier {
			t.Error("it is not written after a restart")
		}
		if _, err := d.NewRaw("UPDATE merchants SET api_key_hash = ?", seal.HashToken(replaced)).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if k, err := MerchantKeysOf(t.Context(), d.Read, "m1"); err != nil || !k.API.Set || k.API.UsedAt != nil {
			t.Errorf("the new key: %+v, %v", k, err)
		}
		tokens := NewTokens(d, sealtest.Ring(t, 1))
		secret, err := tokens.Add(t.Context(), "grafana", Monitor)
		if err != nil {
			t.Fatal(err)
		}
		if err := uses.Note(t.Context(), seal.HashToken(secret)); err != nil {
			t.Fatal(err)
		}
		if all, err := tokens.List(t.Context()); err != nil || len(all) != 1 || all[0].UsedAt == nil {
			t.Errorf("the tokens are %+v, %v", all, err)
		}
	})
}
