package settings_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/supplier/suppliertest"
)

// rows declares settings as apply does: sealed, and with one bump for
// each change.
type rows struct {
	t    *testing.T
	d    *db.DB
	keys *seal.Keyring
}

func each(t *testing.T, test func(t *testing.T, r rows)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, rows{t, d, ring(t, 1)}) })
}

// node is the settings as one process sees them.
func (r rows) node(kinds ...supplier.Kind) *settings.Store {
	s := settings.NewStore(r.d, append(kinds, sortedparams.Kind), r.keys, slog.New(slog.DiscardHandler))
	r.refresh(s)
	return s
}

func (r rows) refresh(s *settings.Store) *settings.Snapshot {
	r.t.Helper()
	if err := s.Refresh(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return s.Current()
}

// exec runs one statement without raising the version.
func (r rows) exec(query string, args ...any) {
	r.t.Helper()
	if _, err := r.d.NewRaw(query, args...).Exec(r.t.Context()); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

// change runs one statement as a change of the settings.
func (r rows) change(query string, args ...any) {
	r.t.Helper()
	if err := r.d.Tx(r.t.Context(), func(ctx context.Context, tx db.Tx) error {
		_, err := tx.NewRaw(query, args...).Exec(ctx)
		return errors.Join(err, settings.IncrementVersion(ctx, tx))
	}); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

const supplierConfig = `{"format":"form","algorithm":"md5","key":"the-suppliers-key","key_append":"&key={key}","sign_field":"sign",
	"order_field":"order","trade_field":"trade","amount_field":"amount","amount_unit":"minor","currency":"CNY",
	"status_field":"status","paid_values":["OK"],"failed_values":["NO"]}`

// supplier declares an enabled supplier of which the config is sealed under keys.
func (r rows) supplier(code string, keys *seal.Keyring) (id int64) {
	r.t.Helper()
	config, err := settings.SealConfig(sortedparams.Kind, keys, code, json.RawMessage(supplierConfig))
	if err != nil {
		r.t.Fatal(err)
	}
	id = r.d.NewID()
	r.exec("INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", id, code)
	r.change("INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at)"+
		` VALUES (?0, ?1, 'sortedparams', ?0, TRUE, '["10.0.0.0/8"]', ?2, 1, 1)`, id, code, string(config))
	return id
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// merchant declares a merchant with an API key and signing secrets, newest first.
func (r rows) merchant(code, keyHash string, s merchant.Settings, keys *seal.Keyring, secrets ...string) (id int64) {
	r.t.Helper()
	id = r.d.NewID()
	s.Endpoints = settings.SealEndpoints(keys, settings.EndpointOwner{Table: settings.MerchantsTable, Code: code}, s.Endpoints)
	r.change("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, 1)",
		id, code, code, keyHash, r.sealedSecrets(settings.SecretPlace(code), keys, secrets), text(r.t, s))
	return id
}

func (r rows) sealedSecrets(place seal.Place, keys *seal.Keyring, secrets []string) string {
	sealed := []string{}
	for _, s := range secrets {
		sealed = append(sealed, keys.Seal(place, []byte(s)))
	}
	return text(r.t, sealed)
}

// subscription declares a subscription; merchants is JSON.
func (r rows) subscription(code, merchants string, s merchant.Settings) (id int64) {
	r.t.Helper()
	id = r.d.NewID()
	s.Endpoints = settings.SealEndpoints(r.keys, settings.EndpointOwner{Table: settings.SubscriptionsTable, Code: code}, s.Endpoints)
	r.change("INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, 1)",
		id, code, code, merchants, r.sealedSecrets(settings.EndpointOwner{Table: settings.SubscriptionsTable, Code: code}.Signing(), r.keys,
			[]string{"its-secret"}), text(r.t, s))
	return id
}

func TestAChangeIsInForceAsAWholeWithItsVersionAndNotBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash-1", merchant.Settings{AckText: "one"}, r.keys)
		node := r.node()
		before := node.Current()
		r.exec("UPDATE merchants SET notify = ?", text(t, merchant.Settings{AckText: "two"}))
		if r.refresh(node) != before {
			t.Error("what is not announced is read")
		}
		r.change("UPDATE merchants SET api_key_hash = 'hash-2'")
		if node.Current() != before {
			t.Error("it changes without being looked at")
		}
		after := r.refresh(node)
		m := after.Merchants.ByKeyHash("hash-2")
		if m == nil || m.Settings.AckText != "two" {
			t.Fatalf("the change is not there: %+v", m)
		}
		if version, err := settings.Version(t.Context(), r.d); err != nil || after.Version != version || version != before.Version+1 {
			t.Errorf("version %d of %d, after %d, %v", after.Version, version, before.Version, err)
		}
		// A holder of the earlier snapshot sees no change.
		if m := before.Merchants.ByCode("m1"); m.Settings.AckText != "one" || before.Merchants.ByKeyHash("hash-1") != m {
			t.Errorf("the earlier snapshot has changed: %+v", m)
		}
		if r.refresh(node) != after {
			t.Error("where nothing changed it is read again")
		}
	})
}

func TestAChangeThatIsTakenBackIsNotAnnounced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		node := r.node()
		before, back := node.Current(), errors.New("taken back")
		if err := r.d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return errors.Join(settings.IncrementVersion(ctx, tx),
				back)
		}); !errors.Is(err, back) {
			t.Fatal(err)
		}
		if r.refresh(node) != before {
			t.Error("it is read again")
		}
	})
}

func TestWhatCannotBeReadLeavesInForceWhatIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash", merchant.Settings{}, r.keys)
		node := r.node()
		before := node.Current()
		r.merchant("m2", "hash-2", merchant.Settings{}, r.keys)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := node.Refresh(gone); err == nil || node.Current() != before {
			t.Errorf("%v, and in force is %+v", err, node.Current())
		}
		if r.refresh(node).Merchants.ByCode("m2") == nil {
			t.Error("the next look does not find it")
		}
	})
}

// Before the first refresh the snapshot is empty and usable.
func TestAStoreThatHasReadNothingIsEmpty(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		s := settings.NewStore(r.d, nil, r.keys, slog.New(slog.DiscardHandler))
		if _, found := s.Current().Suppliers.Lookup("s1"); found || s.Merchants().ByCode("m1") != nil || len(s.Current().Unreadable()) > 0 {
			t.Errorf("it holds %+v", s.Current())
		}
	})
}

// Nodes need not wait for their next regular refresh: one that misses something refreshes at
// once.
func TestWhatIsMissedIsFoundByLookingAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		node := r.node()
		id := r.supplier("s1", r.keys)
		r.merchant("m1", "hash", merchant.Settings{}, r.keys)
		if _, found := node.Current().Suppliers.Lookup("s1"); found || node.Merchants().ByKeyHash("hash") != nil {
			t.Fatal("it is there without being looked at")
		}
		// All that miss it at once share one refresh.
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := node.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				if e, found := node.Current().Suppliers.Lookup("s1"); !found || e.ID != id || node.Merchants().ByKeyHash("hash") == nil {
					t.Errorf("it is not found: %+v", e)
				}
			})
		}
		wg.Wait()
	})
}

// Each change writes the version that it makes into both merchants.
func TestASnapshotIsExactlyItsVersionWhileManyChangeAndLook(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.merchant("m1", "hash", merchant.Settings{MaxInFlight: 3}, r.keys)
		r.merchant("m2", "hash-2", merchant.Settings{MaxInFlight: 3}, r.keys)
		node := r.node()
		const changers, changes = 4, 10
		var wg sync.WaitGroup
		for range changers {
			wg.Go(func() {
				for range changes {
					if err := dbtest.Repeat(r.writeVersion); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 3 {
			wg.Go(func() {
				for last := int64(0); last < 3+changers*changes && !t.Failed(); {
					if err := node.Refresh(t.Context()); err != nil {
						t.Error(err)
					}
					now := node.Current()
					one, two := now.Merchants.ByCode("m1").Settings.MaxInFlight, now.Merchants.ByCode("m2").Settings.MaxInFlight
					if now.Version < last || int64(one) != now.Version || one != two {
						t.Errorf("version %d after %d; the merchants are at %d and %d", now.Version, last, one, two)
					}
					last = now.Version
				}
			})
		}
		wg.Wait()
	})
}

// writeVersion is a change that depends on what it finds.
func (r rows) writeVersion() error {
	return r.d.Tx(r.t.Context(), func(ctx context.Context, tx db.Tx) error {
		if err := settings.LockVersion(ctx, tx, r.d); err != nil {
			return err
		}
		var version int
		if err := tx.NewRaw("SELECT value FROM settings WHERE name = 'config_version'").Scan(ctx, &version); err != nil {
			return err
		}
		notify, err := json.Marshal(merchant.Settings{MaxInFlight: version + 1})
		if err != nil {
			return err
		}
		_, err = tx.NewRaw("UPDATE merchants SET notify = ?", string(notify)).Exec(ctx)
		return errors.Join(err, settings.IncrementVersion(ctx, tx))
	})
}

// A change of a supplier and a merchant is atomic: no snapshot has half of it, at whatever
// moment of the reading it is committed.
func TestNoSnapshotHoldsHalfOfAChange(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		var between func()
		hook := supplier.Kind{Name: "hook", New: func(code string, config json.RawMessage, _ supplier.Client) (supplier.Adapter, error) {
			if f := between; f != nil {
				between = nil
				f()
			}
			return nil, nil
		}}
		r.exec("INSERT INTO supplier_accounts (id, name) VALUES (1, 's1')")
		r.exec("INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (1, 's1', 'hook', 1, TRUE, '[]', '{}', 1, 1)")
		r.merchant("m1", "hash", merchant.Settings{}, r.keys)
		whole := func(s *settings.Snapshot) bool {
			e, _ := s.Suppliers.Lookup("s1")
			return e.Enabled != s.Merchants.ByCode("m1").Disabled
		}
		node := r.node(hook)
		between = func() { // the suppliers have been read, the merchants have not
			if err := r.d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				_, one := tx.NewRaw("UPDATE suppliers SET enabled = FALSE").Exec(ctx)
				_, two := tx.NewRaw("UPDATE merchants SET disabled_at = 1").Exec(ctx)
				return errors.Join(one, two, settings.IncrementVersion(ctx, tx))
			}); err != nil {
				t.Error(err)
			}
		}
		r.change("UPDATE merchants SET name = 'm'")
		if s := r.refresh(node); !whole(s) || between != nil {
			e, _ := s.Suppliers.Lookup("s1")
			t.Errorf("the supplier is enabled: %v; the merchant is disabled: %v", e.Enabled, s.Merchants.ByCode("m1").Disabled)
		}
		if s := r.refresh(node); !whole(s) || !s.Merchants.ByCode("m1").Disabled {
			t.Error("the change is not there with the next look")
		}
	})
}

func TestASupplierThatCannotBeUsedLeavesTheOthersAtWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		r.supplier("good", r.keys)
		id := r.supplier("bad", r.keys)
		node := r.node()
		for name, damage := range map[string]string{
			"a kind that there is not": "UPDATE suppliers SET kind = 'none' WHERE code = 'bad'",
			"another one's key":        "UPDATE suppliers SET config = (SELECT config FROM suppliers WHERE code = 'good') WHERE code = 'bad'",
			"a config of nothing":      "UPDATE suppliers SET config = '{}' WHERE code = 'bad'",
			"no config":                "UPDATE suppliers SET config = '[]' WHERE code = 'bad'",
			"no addresses":             `UPDATE suppliers SET allow_ips = '["here"]' WHERE code = 'bad'`,
		} {
			r.exec("CREATE TABLE kept AS SELECT * FROM suppliers WHERE code = 'bad'")
			r.change(damage)
			now := r.refresh(node)
			if broken, is := now.Suppliers.Broken("bad"); !is || broken != id {
				t.Errorf("%s: it does not count as broken (%d, %v)", name, broken, is)
			}
			if _, found := now.Suppliers.Lookup("bad"); found {
				t.Errorf("%s: it is used", name)
			}
			if got := now.Unreadable(); !slices.Equal(got, []string{"supplier bad"}) {
				t.Errorf("%s: unreadable are %q", name, got)
			}
			if e, found := now.Suppliers.Lookup("good"); !found || !e.Enabled || e.Adapter == nil {
				t.Errorf("%s: the other one is not updated", name)
			}
			r.exec("DELETE FROM suppliers WHERE code = 'bad'")
			r.change("INSERT INTO suppliers SELECT * FROM kept")
			r.exec("DROP TABLE kept")
			now = r.refresh(node)
			if _, found := now.Suppliers.Lookup("bad"); !found || len(now.Unreadable()) > 0 {
				t.Errorf("%s: repaired, it is not used", name)
			}
		}
	})
}

// Settings for calls may be stored although they are invalid: the supplier's callbacks are about
// money that was paid.
func TestASupplierThatCannotBeCalledTakesCallbacksAndIsNamedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ field, with string }{
		"an address without a state": {"status_field", `"query_url":"https://s.example/q"`},
		"no address":                 {"query_url", `"query_url":"s.example","status_field":"status","paid_values":["OK"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r rows) {
				r.supplier("good", r.keys)
				whole := r.node()
				r.supplier("half", r.keys)
				config, err := settings.SealConfig(sortedparams.Kind, r.keys, "half",
					json.RawMessage(`{"algorithm":"md5","key":"the-suppliers-key","key_append":"&key={key}",
					"order_field":"order","trade_field":"trade","amount_field":"amount","amount_unit":"minor","currency":"CNY",`+c.with+
						`}`))
				if err != nil {
					t.Fatal(err)
				}
				r.change("UPDATE suppliers SET config = ? WHERE code = 'half'", string(config))
				var lines bytes.Buffer
				node := settings.NewStore(r.d, supplier.Kinds{sortedparams.Kind}, r.keys, slog.New(slog.NewTextHandler(&lines, nil)))
				node.CallThrough(suppliertest.Client(nil))
				now := r.refresh(node)
				e, found := now.Suppliers.Lookup("half")
				if _, broken := now.Suppliers.Broken("half"); broken || !found || !e.Enabled {
					t.Fatalf("it is not used: %+v, broken %v", e, broken)
				}
				if e.Uncallable == nil || e.Uncallable.Field != c.field || supplier.AbilitiesOf(e.Adapter) != (supplier.Abilities{}) {
					t.Errorf("wrong is %v, abilities %+v", e.Uncallable, supplier.AbilitiesOf(e.Adapter))
				}
				signed := "amount=1999&order=O1&status=OK&trade=T1"
				digest := md5.Sum([]byte(signed + "&key=the-suppliers-key"))
				req := &supplier.Request{Method: "POST", Header: http.Header{}, Body: fmt.Appendf(nil, "%s&sign=%x", signed, digest)}
				if got, err := e.Adapter.Parse(req, nil); err != nil || got.Status != supplier.Paid || got.OrderRef != "O1" ||
					got.Amount != 1999 {
					t.Errorf("its callback is read as %+v, %v", got, err)
				}
				if got := now.Unreadable(); !slices.Equal(got, []string{"calls of supplier half (" + c.field + ")"}) {
					t.Errorf("unreadable are %q", got)
				}
				for range 3 {
					r.change("UPDATE suppliers SET enabled = enabled")
					r.refresh(node)
				}
				warned := strings.Count(lines.String(), "level=WARN")
				if warned != 1 || !strings.Contains(lines.String(), "supplier=half") ||
					!strings.Contains(lines.String(), "config."+c.field) || strings.Contains(lines.String(), "suppliers-key") {
					t.Errorf("%d warnings:\n%s", warned, &lines)
				}
				if good, _ := now.Suppliers.Lookup("good"); good.Uncallable != nil || len(whole.Current().Unreadable()) > 0 {
					t.Errorf("the other one is named too: %v", good.Uncallable)
				}
				// Repaired, and wrong again: that is reported anew.
				mended, err := settings.SealConfig(sortedparams.Kind, r.keys, "half", json.RawMessage(supplierConfig))
				if err != nil {
					t.Fatal(err)
				}
				r.change("UPDATE suppliers SET config = ? WHERE code = 'half'", string(mended))
				if now := r.refresh(node); len(now.Unreadable()) > 0 {
					t.Errorf("repaired, it is still named: %q", now.Unreadable())
				}
				r.change("UPDATE suppliers SET config = ? WHERE code = 'half'", string(config))
				r.refresh(node)
				if warned := strings.Count(lines.String(), "level=WARN"); warned != 2 {
					t.Errorf("%d warnings of two mistakes", warned)
				}
			})
		})
	}
}

func TestADisabledSupplierIsFoundAndNotEnabled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rows) {
		id := r.supplier("s1", r.keys)
		node := r.node()
		for query, enabled := range map[string]bool{
			"UPDATE suppliers SET enabled = FALSE, disabled_at = NULL": false,
			"UPDATE suppliers SET enabled = TRUE, disabled_at = 1":     false,
			"UPDATE suppliers SET enabled = TRUE, disabled_at = NULL":  true,
		} {
			r.change(query)
			now := r.refresh(node)
			if e, found := now.Suppliers.Lookup("s1"); !found || e.Enabled != enabled || e.ID != id || len(e.AllowIPs) != 1 ||
				e.AccountID != id {
				t.Errorf("%s: %+v", query, e)
			}
			if _, broken := now.Suppliers.Broken("s1"); broken {
				t.Errorf("%s: it counts as broken", query)
			}
		}
	})
}
