package settings_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/field"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

func TestARotatedAPIKeyNoLongerWorks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		id := r.merchant("m1", "old", merchant.Settings{}, r.keys)
		node := r.node()
		if m := node.Merchants().ByKeyHash("old"); m == nil || m.ID != id {
			t.Fatalf("the first key finds %+v", m)
		}
		r.change("UPDATE merchants SET api_key_hash = 'new'")
		book := r.refresh(node).Merchants
		if m := book.ByKeyHash("new"); m == nil || m.ID != id {
			t.Errorf("the new key finds %+v", m)
		}
		if book.ByKeyHash("old") != nil {
			t.Error("the old one still works")
		}
		r.change("UPDATE merchants SET api_key_hash = NULL")
		book = r.refresh(node).Merchants
		if book.ByKeyHash("new") != nil || book.ByKeyHash("") != nil || book.ByCode("m1") == nil {
			t.Error("who has no key is found by one, or not by its code")
		}
	})
}

func TestTheKeyOfADisabledMerchantDoesNotWorkUntilItIsEnabledAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		id := r.merchant("m1", "hash", merchant.Settings{}, r.keys)
		node := r.node()
		r.change("UPDATE merchants SET disabled_at = 1")
		book := r.refresh(node).Merchants
		if book.ByKeyHash("hash") != nil {
			t.Error("its key works")
		}
		if m := book.ByID(id); m == nil || !m.Disabled || book.ByCode("m1") != m {
			t.Errorf("it is not found, or not as disabled: %+v", m)
		}
		r.change("UPDATE merchants SET disabled_at = NULL")
		if m := r.refresh(node).Merchants.ByKeyHash("hash"); m == nil || m.Disabled {
			t.Errorf("enabled again, it is %+v", m)
		}
	})
}

func TestSecretsAreOpenInMemoryAndNewestFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash", merchant.Settings{}, r.keys, "newer-secret", "older-secret")
		r.subscription("data", "null", merchant.Settings{})
		book := r.node().Merchants()
		m := book.ByCode("m1")
		if len(m.Secrets) != 2 || string(m.Secrets[0]) != "newer-secret" || string(m.Secrets[1]) != "older-secret" {
			t.Errorf("the secrets are %q", m.Secrets)
		}
		if s := book.Subscriber("data"); s == nil || len(s.Secrets) != 1 || string(s.Secrets[0]) != "its-secret" {
			t.Errorf("the subscription is %+v", s)
		}
	})
}

// Messages to be signed wait on the node that lacks the key; all others go on.
func TestAMerchantWhoseSecretsDoNotOpenHereIsLockedAndNotBroken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash", merchant.Settings{AckText: "ok"}, ring(t, 2), "secret")
		r.merchant("m2", "hash-2", merchant.Settings{}, r.keys, "secret")
		now := r.node().Current()
		m := now.Merchants.ByKeyHash("hash")
		if m == nil || !m.Locked || m.Broken || now.Merchants.Broken(m.ID) || m.Settings.AckText != "ok" {
			t.Errorf("it is %+v", m)
		}
		if got := now.Unreadable(); !slices.Equal(got, []string{"merchant m1"}) {
			t.Errorf("unreadable are %q", got)
		}
		if other := now.Merchants.ByCode("m2"); other.Locked || other.Broken {
			t.Errorf("the other one is %+v", other)
		}
		// Another owner's secret, copied here, does not open either.
		r.change("UPDATE merchants SET signing_secrets = ? WHERE code = 'm1'", r.sealedSecrets(settings.SecretPlace("m2"), r.keys,
			[]string{"secret"}))
		if m := r.node().Merchants().ByCode("m1"); !m.Locked || m.Broken {
			t.Errorf("with another one's secret it is %+v", m)
		}
		r.change("UPDATE merchants SET signing_secrets = ? WHERE code = 'm1'", r.sealedSecrets(settings.SecretPlace("m1"), r.keys,
			[]string{"secret"}))
		if now := r.node().Current(); now.Merchants.ByCode("m1").Locked || len(now.Unreadable()) > 0 {
			t.Errorf("repaired, unreadable are %q", now.Unreadable())
		}
	})
}

func TestAMerchantWhoseRowCannotBeReadIsBrokenAndKeepsWhatWasReadLast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		id := r.merchant("m1", "hash", merchant.Settings{AckText: "last", URLs: []string{"https://m1.example"}}, r.keys, "secret")
		r.merchant("m2", "hash-2", merchant.Settings{}, r.keys, "secret")
		good := r.sealedSecrets(settings.SecretPlace("m1"), r.keys, []string{"secret"})
		node := r.node()
		for name, damage := range map[string]string{
			"notify":  `UPDATE merchants SET notify = '{"urls":7}' WHERE code = 'm1'`,
			"secrets": `UPDATE merchants SET signing_secrets = '{"a":1}' WHERE code = 'm1'`,
		} {
			r.change(damage)
			for _, n := range []struct {
				node *settings.Store
				ack  string
			}{{node, "last"}, {r.node(), map[string]string{"secrets": "last"}[name]}} { // the second has just been started
				now := r.refresh(n.node)
				m := now.Merchants.ByID(id)
				if m == nil || !m.Broken || m.Locked || !now.Merchants.Broken(id) || m.Settings.AckText != n.ack {
					t.Errorf("%s: it is %+v", name, m)
				}
				if n.ack != "" && (len(m.Endpoints) != 1 || m.Endpoints[0].URL != "https://m1.example") {
					t.Errorf("%s: its endpoints are %+v", name, m.Endpoints)
				}
				if got := now.Unreadable(); !slices.Equal(got, []string{"merchant m1"}) {
					t.Errorf("%s: unreadable are %q", name, got)
				}
				if other := now.Merchants.ByCode("m2"); other.Broken {
					t.Errorf("%s: the other one is broken too", name)
				}
			}
			r.change("UPDATE merchants SET notify = ?, signing_secrets = ? WHERE code = 'm1'",
				text(t, merchant.Settings{AckText: "last", URLs: []string{"https://m1.example"}}), good)
			if now := r.refresh(node); now.Merchants.Broken(id) || len(now.Unreadable()) > 0 {
				t.Errorf("%s: repaired, unreadable are %q", name, now.Unreadable())
			}
		}
	})
}

// SQLite accepts a text in a column of numbers: one such value must not hide all rows.
func TestATextInAColumnOfNumbersIsOneBrokenRow(t *testing.T) {
	t.Parallel()
	r := rows{t, dbtest.SQLite(t), ring(t, 1)}
	id := r.merchant("m1", "hash", merchant.Settings{AckText: "last"}, r.keys, "secret")
	r.merchant("m2", "hash-2", merchant.Settings{}, r.keys, "secret")
	subscriber := r.subscription("data", "null", merchant.Settings{})
	r.subscription("erp", "null", merchant.Settings{})
	node := r.node()
	for _, column := range []string{"disabled_at", "created_at", "updated_at"} {
		r.exec("UPDATE merchants SET "+column+" = 'soon' WHERE id = ?", id)
		r.change("UPDATE subscriptions SET "+column+" = 'soon' WHERE id = ?", subscriber)
		for _, n := range []*settings.Store{node, r.node()} { // the second has just been started
			now := r.refresh(n)
			if got := now.Unreadable(); !slices.Equal(got, []string{"merchant m1", "subscription data"}) {
				t.Errorf("%s: unreadable are %q", column, got)
			}
			if m := now.Merchants.ByKeyHash("hash"); m == nil || m.ID != id || !m.Broken || m.Disabled ||
				now.Merchants.ByKeyHash("hash-2").Broken {
				t.Errorf("%s: it is %+v", column, m)
			}
			if s := now.Merchants.ByID(subscriber); s == nil || !s.Subscriber || !s.Broken ||
				len(now.Merchants.Subscribers("m2", "order.paid")) != 2 {
				t.Errorf("%s: the subscription is %+v", column, s)
			}
		}
		if m := node.Merchants().ByID(id); m.Settings.AckText != "last" {
			t.Errorf("%s: it does not keep what was read last: %+v", column, m)
		}
		r.exec("UPDATE merchants SET created_at = 1, updated_at = 1, disabled_at = NULL")
		r.change("UPDATE subscriptions SET created_at = 1, updated_at = 1, disabled_at = NULL")
		if got := r.refresh(node).Unreadable(); len(got) > 0 {
			t.Errorf("%s: repaired, unreadable are %q", column, got)
		}
	}
}

func TestEndpointsAreOpenInMemoryAndSealedAtRest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		desk := merchant.Endpoint{
			Name: "desk", Channel: "webhook", URL: "https://desk.example", Weight: 1,
			Headers: map[string]string{"X-Key": "header-secret"}, Credentials: map[string]string{"token": "token-secret"},
		}
		id := r.merchant("m1", "hash", merchant.Settings{URLs: []string{"https://plain.example"}, Endpoints: []merchant.Endpoint{desk}},
			r.keys)
		var stored string
		if err := r.d.Read.NewRaw("SELECT CAST(notify AS TEXT) FROM merchants").Scan(t.Context(), &stored); err != nil ||
			strings.Contains(stored, "-secret") {
			t.Errorf("stored as %s, %v", stored, err)
		}
		m := r.node().Merchants().ByID(id)
		e := m.Endpoint("desk")
		if len(m.Endpoints) != 2 || m.Endpoints[0].URL != "https://plain.example" || e == nil || e.Locked ||
			e.Headers["X-Key"] != "header-secret" || e.Credentials["token"] != "token-secret" {
			t.Errorf("in memory are %+v", m.Endpoints)
		}
		if desk.Headers["X-Key"] != "header-secret" {
			t.Error("to be sealed changes what was given")
		}
		// Another merchant's sealed text does not open here: what goes there waits, and what
		// goes to the plain address does not.
		r.change("UPDATE merchants SET code = 'm2'")
		m = r.node().Merchants().ByID(id)
		if e := m.Endpoint("desk"); e == nil || !e.Locked || m.Broken || m.Endpoint("https://plain.example").Locked {
			t.Errorf("moved to another merchant they are %+v", m.Endpoints)
		}
	})
}

func TestNothingElseOfItsOwnerOrOfAnotherIsDisabledWithAnAddress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		two := merchant.Settings{Endpoints: []merchant.Endpoint{
			{Name: "a", Channel: "webhook", URL: "https://a.example"},
			{Name: "b", Channel: "webhook", URL: "https://b.example"},
		}}
		id := r.merchant("m1", "hash", two, r.keys)
		r.merchant("m2", "hash-2", two, r.keys)
		subscriber := r.subscription("data", "null", two)
		node := r.node()
		disabled := func() (names []string) {
			book := r.refresh(node).Merchants
			for _, m := range []*merchant.Merchant{book.ByCode("m1"), book.ByCode("m2"), book.ByID(subscriber)} {
				for _, e := range m.Endpoints {
					if e.Disabled {
						names = append(names, m.Code+"."+e.Name)
					}
				}
			}
			return names
		}
		r.exec("INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, reason) VALUES (?, 'b', 3, 'x', '')", id)
		r.change("INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, disabled_at, reason) VALUES (?, 'a', 9, 'x', 1, 'gone')", id)
		if got := disabled(); !slices.Equal(got, []string{"m1.a"}) {
			t.Errorf("disabled are %q", got)
		}
		r.change("UPDATE endpoint_health SET recipient_id = ? WHERE endpoint = 'a'", subscriber)
		if got := disabled(); !slices.Equal(got, []string{"data.a"}) {
			t.Errorf("disabled are %q", got)
		}
		r.change("UPDATE endpoint_health SET disabled_at = NULL")
		if got := disabled(); len(got) > 0 {
			t.Errorf("enabled again, disabled are %q", got)
		}
	})
}

func TestSubscriptionsAreToldOfWhatTheyFollowWhileTheyAreEnabled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash", merchant.Settings{}, r.keys)
		r.subscription("all", "null", merchant.Settings{})
		r.subscription("m1-paid", `["m1"]`, merchant.Settings{Events: []string{"order.paid"}})
		id := r.subscription("m2-all", `["m2"]`, merchant.Settings{})
		node := r.node()
		notified := func(code, event string) (codes []string) {
			for _, s := range r.refresh(node).Merchants.Subscribers(code, event) {
				codes = append(codes, s.Code)
			}
			return codes
		}
		want := func(code, event string, codes ...string) {
			t.Helper()
			if got := notified(code, event); !slices.Equal(got, codes) {
				t.Errorf("of %s of %s are notified %q, want %q", event, code, got, codes)
			}
		}
		want("m1", "order.paid", "all", "m1-paid")
		want("m1", "order.closed", "all")
		want("m2", "order.closed", "all", "m2-all")
		if book := node.Merchants(); book.ByCode("all") != nil || book.ByID(id) == nil || !book.ByID(id).Subscriber {
			t.Error("one is found as a merchant, or not by its id")
		}
		r.change("UPDATE subscriptions SET disabled_at = 1 WHERE code = 'all'")
		want("m1", "order.paid", "m1-paid")
		if node.Merchants().Subscriber("all") != nil {
			t.Error("a disabled one is found")
		}
		// Of one that cannot be read it is not known: it is included, and checked again before it is notified.
		r.change(`UPDATE subscriptions SET merchants = '{"a":1}' WHERE code = 'm2-all'`)
		want("m1", "order.paid", "m1-paid", "m2-all")
		if got := node.Current().Unreadable(); !slices.Equal(got, []string{"subscription m2-all"}) || !node.Merchants().Broken(id) {
			t.Errorf("unreadable are %q", got)
		}
	})
}

func TestSecretsOfASuppliersConfigOpenInTheirPlaceOnly(t *testing.T) {
	t.Parallel()
	keys := ring(t, 1)
	kind := supplier.Kind{Name: "x", Fields: []supplier.Field{
		{Field: field.Field{Name: "key", Secret: true}},
		{Field: field.Field{Name: "old_keys", Secret: true}},
		{Field: field.Field{Name: "absent", Secret: true}},
	}}
	plain := json.RawMessage(`{"key":"k-secret","old_keys":["o1-secret","o2-secret"],"url":"https://s.example"}`)
	sealed, err := settings.SealConfig(kind, keys, "s1", plain)
	if err != nil || bytes.Contains(sealed, []byte("-secret")) || !bytes.Contains(sealed, []byte("https://s.example")) {
		t.Fatalf("sealed it is %s, %v", sealed, err)
	}
	open := func(keys *seal.Keyring, code string) (string, error) {
		raw, err := settings.OpenConfig(supplier.Kinds{kind}, keys, settings.SupplierRow{Code: code, Kind: "x", Config: sealed})
		return string(raw), err
	}
	if got, err := open(keys, "s1"); err != nil || got != string(plain) {
		t.Errorf("open it is %s, %v", got, err)
	}
	if got, err := open(keys, "s2"); err == nil {
		t.Errorf("it opens for another supplier: %s", got)
	}
	if got, err := open(ring(t, 2), "s1"); err == nil || !strings.Contains(err.Error(), "config.") {
		t.Errorf("it opens under another key, or the field is not named: %s, %v", got, err)
	}
}
