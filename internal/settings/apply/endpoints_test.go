package apply

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/merchant"
	"backstop/internal/settings"
)

// clientPair writes a certificate and its key and returns their folder.
func clientPair(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: raw},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const routedFile = `
merchants:
  - code: m1
    signing_secret: ` + secretA + `
    notify:
      urls: [https://a.example/notify]
      balance: weighted
      events: [order.paid, order.closed]
      endpoints:
        - name: backup
          channel: webhook
          url: https://b.example/notify
          weight: 5
          events: [order.paid]
          headers: { X-Tenant: header-of-seven }
          credentials: { form_key: credential-of-nine }
          client_cert: file:cert.pem
          client_key: file:key.pem
subscriptions:
  - code: warehouse
    merchants: [m1]
    events: [order.paid]
    signing_secret: ` + secretB + `
    schedule: quick
    endpoints:
      - { name: main, url: https://warehouse.example/events, credentials: { token: credential-of-ten } }
`

func TestAddressesAreAppliedSealedAndKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		folder := clientPair(t)
		apply := func(file string, want ...string) {
			t.Helper()
			out.Reset()
			if err := Apply(t.Context(), env, File{Name: "r.yaml", Dir: folder, Text: []byte(file)}); err != nil {
				t.Fatal(err)
			}
			wantLines(t, strings.Split(strings.TrimSpace(out.String()), "\n"), want...)
		}
		apply(routedFile, "merchant m1 created", "subscription warehouse created")
		apply(routedFile, "merchant m1 unchanged", "subscription warehouse unchanged")

		var stored []string
		if err := d.NewRaw("SELECT CAST(notify AS TEXT) FROM merchants UNION ALL SELECT CAST(notify AS TEXT) FROM subscriptions").Scan(
			t.Context(), &stored); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"-of-seven", "-of-nine", "-of-ten", "PRIVATE KEY"} {
			if strings.Contains(strings.Join(stored, "\n"), secret) {
				t.Errorf("%q is stored readably", secret)
			}
		}
		check := func() {
			t.Helper()
			book := load(t, env)
			m := book.ByCode("m1")
			if len(m.Endpoints) != 2 || m.Endpoints[0].URL != "https://a.example/notify" || m.Settings.Balance != merchant.Weighted {
				t.Fatalf("endpoints %+v", m.Endpoints)
			}
			e := m.Endpoint("backup")
			if e.Headers["X-Tenant"] != "header-of-seven" || e.Credentials["form_key"] != "credential-of-nine" || e.Certificate == nil ||
				e.Weight != 5 || e.Locked || e.Disabled {
				t.Errorf("endpoint %+v", e)
			}
			subs := book.Subscribers("m1", "order.paid")
			if len(subs) != 1 || !subs[0].Subscriber || subs[0].Endpoints[0].Credentials["token"] != "credential-of-ten" ||
				len(subs[0].Secrets) != 1 || len(subs[0].Settings.WaitsMS) != 3 {
				t.Fatalf("subscribers %+v", subs)
			}
			if len(book.Subscribers("m2", "order.paid"))+len(book.Subscribers("m1", "order.closed")) > 0 ||
				book.ByCode("warehouse") != nil {
				t.Error("the warehouse's subscription is not as declared")
			}
		}
		check()

		// A file without secrets can be kept anywhere and applied again.
		var public []string
		for line := range strings.Lines(routedFile) {
			if !strings.Contains(line, "signing_secret") && !strings.Contains(line, "form_key") && !strings.Contains(line, "client_key") {
				public = append(public, strings.Replace(line, ", credentials: { token: credential-of-ten }", "", 1))
			}
		}
		apply(strings.Join(public, ""), "merchant m1 unchanged", "subscription warehouse unchanged")

		env.Keys = keyring(t, 2, 1)
		if n, err := Reseal(t.Context(), env, nil); err != nil || n != 2 {
			t.Fatalf("resealed %d, %v", n, err)
		}
		env.Keys = keyring(t, 2)
		check()
		apply(routedFile, "merchant m1 unchanged", "subscription warehouse unchanged")

		changed := strings.NewReplacer("credential-of-nine", "another", "weight: 5", "weight: 6", "[order.paid, order.closed]", "[]",
			"merchants: [m1]", "merchants: all", "schedule: quick", "enabled: false\n    schedule: null").Replace(routedFile)
		apply(changed, "merchant m1 changed: notify.events, notify.endpoints",
			"subscription warehouse changed: enabled, merchants, schedule")
		if subs := load(t, env).Subscribers("m2", "order.paid"); len(subs) != 0 {
			t.Error("a disabled subscription is notified")
		}
	})
}

func load(t *testing.T, env Env) *merchant.Directory {
	t.Helper()
	store := settings.NewStore(env.DB, env.Kinds, env.Keys, slog.New(slog.DiscardHandler))
	if err := store.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.Merchants()
}

func TestADisabledAddressThatIsDeclaredIsEnabledAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		id := load(t, env).ByCode("m1").ID
		for _, endpoint := range []string{"https://a.example/notify", "https://gone.example"} {
			_, err := d.NewRaw(
				"INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, disabled_at, reason) VALUES (?, ?, 4, '', 1, 'answered 410')", id, endpoint).Exec(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		if !load(t, env).ByCode("m1").Endpoints[0].Disabled {
			t.Fatal("a node does not see that the address is disabled")
		}
		lines := mustApply(t, env, out, whole)
		wantLines(t, lines, "supplier wx-main unchanged", "merchant m1 changed: an address is enabled again", "sku SKU-1 unchanged",
			"account m1 CNY unchanged")
		if load(t, env).ByCode("m1").Endpoints[0].Disabled {
			t.Error("the address is still disabled")
		}
		wantLines(t, mustApply(t, env, out, whole), "supplier wx-main unchanged", "merchant m1 unchanged", "sku SKU-1 unchanged",
			"account m1 CNY unchanged")
	})
}

// TestWithoutTheMasterKeyAddressesStayAndFail: an address must not vanish, since its events
// would be recorded as having no address.
func TestWithoutTheMasterKeyAddressesStayAndFail(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, dbtest.SQLite(t))
	if err := Apply(t.Context(), env, File{Name: "r.yaml", Dir: clientPair(t), Text: []byte(routedFile)}); err != nil {
		t.Fatal(err)
	}
	env.Keys = keyring(t, 9)
	e := load(t, env).ByCode("m1").Endpoint("backup")
	if e == nil || !e.Locked || e.Certificate != nil {
		t.Errorf("endpoint %+v", e)
	}
}

// TestThePageAboutRoutingCanBeApplied applies the example of docs/routing.md.
func TestThePageAboutRoutingCanBeApplied(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	env, out := newEnv(t, dbtest.SQLite(t))
	wantLines(t, mustApply(t, env, out, example), "merchant m1 created", "subscription warehouse created")
	wantLines(t, mustApply(t, env, out, example), "merchant m1 unchanged", "subscription warehouse unchanged")
}
