package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/field"
	"backstop/internal/base/seal"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// fake is a kind of supplier with a field of every form.
type fake struct {
	supplier.Adapter
	config fakeConfig
}

type fakeConfig struct {
	MchID string   `json:"mch_id"`
	Key   string   `json:"key"`
	Certs []string `json:"certs"`
	Tries int      `json:"tries"`
	Reply struct {
		Success string `json:"success"`
	} `json:"reply"`
}

func (f *fake) Account() string { return "fake:" + f.config.MchID }

var kinds = supplier.Kinds{{
	Name: "fake",
	Fields: []supplier.Field{
		{Field: field.Field{Name: "key", Secret: true}},
		{Field: field.Field{Name: "certs", Secret: true, PEM: true}},
	},
	New: func(_ string, raw json.RawMessage, _ supplier.Client) (supplier.Adapter, error) {
		f := new(fake)
		if err := supplier.DecodeConfig(raw, &f.config); err != nil {
			return nil, err
		}
		if f.config.MchID == "" {
			return nil, &supplier.FieldError{Field: "mch_id", Problem: "missing"}
		}
		if f.config.Reply.Success == "bad" {
			return nil, &supplier.FieldError{Field: "reply.success", Problem: "is bad"}
		}
		return f, nil
	},
}}

func keyring(t *testing.T, firsts ...byte) *seal.Keyring {
	t.Helper()
	var keys [][]byte
	for _, first := range firsts {
		keys = append(keys, append([]byte{first}, make([]byte, 31)...))
	}
	k, err := seal.NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newEnv(t *testing.T, d *db.DB) (Env, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	checkURL := func(u string) error {
		if !strings.HasPrefix(u, "https://") {
			return errors.New("only https is reached")
		}
		return nil
	}
	return Env{DB: d, Keys: keyring(t, 1), Kinds: kinds, Ledger: ledger.New(d), CheckURL: checkURL, Out: out}, out
}

const (
	secretA = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	secretB = "whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="
	keyM1   = "sk_live_0123456789abcdef"
	keyM2   = "sk_live_fedcba9876543210"
)

const whole = `
suppliers:
  - code: wx-main
    kind: fake
    allow_ips: [101.226.103.0/25, 10.0.0.7]
    config: { mch_id: 1900000109, key: top-secret, certs: ["c-1", c-2], tries: 3, reply: { success: ok } }
merchants:
  - code: m1
    name: Galaxy Mall
    api_key: ` + keyM1 + `
    signing_secret: ` + secretA + `
    notify:
      urls: [https://a.example/notify]
      schedule: [1s, 2s]
      timeout: 5s
skus:
  - { sku: SKU-1, stock: 100 }
accounts:
  - { merchant: m1, currency: CNY, balance: 1000000 }
`

func asFile(s string) File { return File{Name: "backstop.yaml", Dir: ".", Text: []byte(s)} }

func mustApply(t *testing.T, env Env, out *bytes.Buffer, file string) []string {
	t.Helper()
	out.Reset()
	if err := Apply(t.Context(), env, asFile(file)); err != nil {
		t.Fatalf("apply: %v", err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func version(t *testing.T, d *db.DB) (v int64) {
	t.Helper()
	if err := d.NewRaw("SELECT value FROM settings WHERE name = 'config_version'").Scan(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func count(t *testing.T, d *db.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := d.NewRaw(query, args...).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestApplyingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		before := version(t, d)
		wantLines(t, mustApply(t, env, out, whole), "supplier wx-main created", "merchant m1 created", "sku SKU-1 created",
			"account m1 CNY opened 1000000")
		made := version(t, d)
		if made != before+1 {
			t.Errorf("version of the settings went from %d to %d, want one step", before, made)
		}
		wantLines(t, mustApply(t, env, out, whole), "supplier wx-main unchanged", "merchant m1 unchanged", "sku SKU-1 unchanged",
			"account m1 CNY unchanged")
		if v := version(t, d); v != made {
			t.Errorf("applying the same again moved the version from %d to %d", made, v)
		}
		if n := count(t, d, "SELECT count(*) FROM transfers"); n != 1 {
			t.Errorf("%d transfers, want the opening balance once", n)
		}
	})
}

func TestARunningNodeSeesWhatWasApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		store := settings.NewStore(d, kinds, env.Keys, slog.New(slog.DiscardHandler))
		if err := store.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, ok := store.Current().Suppliers.Lookup("wx-main")
		if !ok || !s.Enabled || len(s.AllowIPs) != 2 || s.AccountID == 0 {
			t.Fatalf("supplier = %+v, found %t", s, ok)
		}
		f := s.Adapter.(*fake).config
		if f.MchID != "1900000109" || f.Key != "top-secret" || !slices.Equal(f.Certs, []string{"c-1", "c-2"}) || f.Tries != 3 {
			t.Errorf("config = %+v", f)
		}
		m := store.Merchants().ByKeyHash(seal.HashToken(keyM1))
		if m == nil || m.Code != "m1" || len(m.Secrets) != 1 || string(m.Secrets[0]) != strings.Repeat("A", 32) {
			t.Fatalf("merchant = %+v", m)
		}
		want := merchant.Settings{
			URLs: []string{"https://a.example/notify"}, Ack: "status", AckText: "success", Format: "standard",
			Schedule: "list", WaitsMS: []int64{1000, 2000}, TimeoutMS: 5000, MaxInFlight: 10, Balance: merchant.Failover,
		}
		if fmt.Sprint(m.Settings) != fmt.Sprint(want) {
			t.Errorf("settings = %+v, want %+v", m.Settings, want)
		}
	})
}

func TestSecretsAreStoredSealedAndKeysHashed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		var rows []string
		err := d.NewRaw("SELECT CAST(config AS TEXT) || fingerprint FROM suppliers UNION ALL"+
			" SELECT CAST(signing_secrets AS TEXT) || api_key_hash || fingerprint FROM merchants").Scan(t.Context(), &rows)
		if err != nil {
			t.Fatal(err)
		}
		stored := strings.Join(rows, "\n")
		if !strings.Contains(stored, "sealed:v1:") || !strings.Contains(stored, "1900000109") {
			t.Fatalf("unexpected rows: %s", stored)
		}
		for _, secret := range []string{"top-secret", "c-1", "c-2", keyM1, "QUFBQUFB", "AAAAAAAAAAAAAAAA"} {
			if strings.Contains(stored, secret) || strings.Contains(out.String(), secret) {
				t.Errorf("%q is stored or printed readable", secret)
			}
		}
	})
}

func TestChangesAreNamedByField(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		edited := strings.NewReplacer(
			"timeout: 5s", "timeout: 6s", "signing_secret: "+secretA, "signing_secrets: ["+secretB+", "+secretA+"]",
			"key: top-secret", "key: other-secret", "[101.226.103.0/25, 10.0.0.7]", "[]", "tries: 3, ", "",
			"stock: 100", "stock: 500", "balance: 1000000", "balance: 7",
		).Replace(whole)
		wantLines(t, mustApply(t, env, out, edited),
			"supplier wx-main changed: allow_ips, config.key, config.tries",
			"merchant m1 changed: signing_secret, notify.timeout",
			"sku SKU-1 unchanged (live stock is never overwritten)",
			"account m1 CNY unchanged (opened with 1000000; an opening balance is applied once)")
		if n := count(t, d, "SELECT stock FROM skus WHERE sku = 'SKU-1'"); n != 100 {
			t.Errorf("stock = %d, want the 100 applied first", n)
		}
		var row merchant.Row
		if err := d.NewSelect().Model(&row).Where("code = 'm1'").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		secrets, err := settings.OpenSecrets(env.Keys, settings.EndpointOwner{Table: settings.MerchantsTable, Code: "m1"},
			row.SigningSecrets)
		if err != nil || len(secrets) != 2 || secrets[0][0] != 'B' || secrets[1][0] != 'A' {
			t.Errorf("secrets = %q, %v, want the newest first", secrets, err)
		}
	})
}

// A rate of 0 is stored; a rate that is left out is not, and follows the program's own setting.
func TestAMerchantsBreakerMayBeOpenedByNoRate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		for _, c := range []struct {
			says string
			want merchant.Breaker
		}{
			{"breaker: { rate: 0, least: 7 }", merchant.Breaker{RatePercent: merchant.NoRate, MinSamples: 7}},
			{"breaker: { rate: 60 }", merchant.Breaker{RatePercent: 60}},
			{"breaker: { failures: 3 }", merchant.Breaker{Failures: 3}},
		} {
			file := strings.Replace(whole, "timeout: 5s", "timeout: 5s\n      "+c.says, 1)
			if stderr := mustApply(t, env, out, file); !slices.Contains(stderr, "merchant m1 changed: notify.breaker") {
				t.Errorf("%s: %s", c.says, stderr)
			}
			if stderr := mustApply(t, env, out, file); !slices.Contains(stderr, "merchant m1 unchanged") {
				t.Errorf("%s again: %s", c.says, stderr)
			}
			var row merchant.Row
			var is merchant.Settings
			if err := d.NewSelect().Model(&row).Where("code = 'm1'").Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(row.Notify, &is); err != nil || is.Breaker != c.want {
				t.Errorf("%s: %+v, %v", c.says, is.Breaker, err)
			}
		}
	})
}

// Suppliers that share a key are named, also if the file has only one of them; nothing is refused.
func TestSuppliersThatShareAKeyAreNamed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		const one = "suppliers:\n  - {code: %s, kind: fake, config: {mch_id: '%s', key: %s, certs: [%s]}}\n"
		wantLines(t, mustApply(t, env, out, fmt.Sprintf(one, "a", "1", "common", "c-1")), "supplier a created")
		wantLines(t, mustApply(t, env, out, fmt.Sprintf(one, "b", "2", "another", "c-1")), "supplier b created") // certs are private keys
		wantLines(t, mustApply(t, env, out, fmt.Sprintf(one, "c", "3", "common", "c-2")), "supplier c created",
			"note: suppliers a, c share a key (config.key): a callback for one is authentic for the others, unless it names its account")
		if lines := mustApply(t, env, out, fmt.Sprintf(one, "b", "2", "another", "c-1")); len(lines) != 2 || strings.Contains(out.String(), "common") {
			t.Errorf("printed %q", lines)
		}
		lines := mustApply(t, env, out, fmt.Sprintf(one, "c", "3", "its-own", "c-2"))
		if len(lines) != 1 {
			t.Errorf("printed %q", lines)
		}
	})
}

func TestAFileWithoutSecretsKeepsThem(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, name: Renamed }]"), "merchant m1 changed: name")
		n := count(t, d, "SELECT count(*) FROM merchants WHERE api_key_hash = ? AND CAST(signing_secrets AS TEXT) LIKE '%sealed%'",
			seal.HashToken(keyM1))
		if n != 1 {
			t.Error("the API key or the signing secret is gone")
		}
	})
}

func TestMerchantsMaySwapTheirKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		file := func(one, two string) string {
			return "merchants:\n - { code: m1, api_key: " + one + ", signing_secret: " + secretA + " }\n" +
				" - { code: m2, api_key: " + two + ", signing_secret: " + secretA + " }\n"
		}
		mustApply(t, env, out, file(keyM1, keyM2))
		wantLines(t, mustApply(t, env, out, file(keyM2, keyM1)), "merchant m1 changed: api_key", "merchant m2 changed: api_key")
		err := Apply(t.Context(), env, asFile("merchants: [{ code: m3, api_key: "+keyM1+", signing_secret: "+secretA+" }]"))
		if err == nil || !strings.Contains(err.Error(), "backstop.yaml:1: merchants[0].api_key: this is the API key of merchant m2") {
			t.Errorf("another merchant's key: %v", err)
		}
		if strings.Contains(fmt.Sprint(err), keyM1) {
			t.Error("the error repeats the key")
		}
	})
}

// TestAnInvalidFileChangesNothing applies a file whose last entry is wrong.
func TestAnInvalidFileChangesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		for _, wrong := range []string{
			whole + "  - { merchant: nobody, currency: CNY, balance: 5 }\n", // known from the database only
			whole + "  - { merchant: m1, currency: XXX, balance: 5 }\n",
		} {
			err := Apply(t.Context(), env, asFile(wrong))
			var invalid *Invalid
			if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || !strings.HasPrefix(invalid.Problems[0],
				"backstop.yaml:20: accounts[1].") {
				t.Fatalf("err = %v", err)
			}
			for _, table := range []string{"suppliers", "supplier_accounts", "merchants", "skus", "accounts", "transfers"} {
				if n := count(t, d, "SELECT count(*) FROM ?", bun.Ident(table)); n != 0 {
					t.Errorf("%s has %d rows after an invalid file", table, n)
				}
			}
			if out.Len() > 0 {
				t.Errorf("printed %q of a file that changed nothing", out)
			}
		}
	})
}

func TestTwoThatApplyAtOnceBothEndWell(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, _ := newEnv(t, d)
		const rounds, racers = 3, 6
		for round := range rounds {
			var all sync.WaitGroup
			outs := make([]bytes.Buffer, racers)
			errs := make([]error, racers)
			file := strings.NewReplacer("wx-main", fmt.Sprintf("wx-%d", round), "code: m1", fmt.Sprintf("code: m-%d", round),
				"merchant: m1", fmt.Sprintf("merchant: m-%d", round), keyM1, fmt.Sprintf("%s-%d", keyM1, round), "SKU-1",
				fmt.Sprintf("SKU-%d", round)).Replace(whole)
			for i := range racers {
				mine := env
				mine.Out, mine.Ledger = &outs[i], ledger.New(d)
				all.Go(func() { errs[i] = Apply(context.Background(), mine, asFile(file)) })
			}
			all.Wait()
			created, unchanged := 0, 0
			for i := range racers {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				created += strings.Count(outs[i].String(), "created") + strings.Count(outs[i].String(), "opened")
				unchanged += strings.Count(outs[i].String(), "unchanged")
			}
			if created != 4 || unchanged != 4*(racers-1) {
				t.Errorf("round %d: %d created and %d unchanged, want 4 and %d", round, created, unchanged, 4*(racers-1))
			}
		}
	})
}

func TestKeysMayLieInFilesBesideTheFile(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	env, out := newEnv(t, d)
	dir := t.TempDir()
	pem := "-----BEGIN KEY-----\nAAAA\n-----END KEY-----"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key.pem", pem+"\n")
	write("key", "key-of-one-line\r\n")
	write("large", strings.Repeat("x", maxKeyFile+1))
	write("binary", "\xff\xfe\x00")
	write("backstop.yaml", "suppliers: [{ code: a, kind: fake, config: { mch_id: '1', key: 'file:key', certs: ['file:key.pem', c] } }]")
	f, err := ReadFile(filepath.Join(dir, "backstop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(t.Context(), env, f); err != nil {
		t.Fatal(err)
	}
	var row settings.SupplierRow
	if err := d.NewSelect().Model(&row).Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := settings.OpenConfig(kinds, env.Keys, row)
	var got fakeConfig
	if err != nil || json.Unmarshal(raw, &got) != nil || got.Key != "key-of-one-line" || got.Certs[0] != pem || got.Certs[1] != "c" {
		t.Errorf("config = %s, %v", raw, err)
	}
	out.Reset()
	for path, want := range map[string]string{
		"large": "larger than 64 KiB", "binary": "not a text", "missing": "cannot be read", ".": "is not a regular file", "": "is missing",
	} {
		f.Text = []byte("suppliers:\n- code: a\n  kind: fake\n  config:\n    mch_id: '1'\n    certs: [ok, 'file:" + path + "']")
		err := Apply(t.Context(), env, f)
		if err == nil || !strings.HasPrefix(err.Error(), "backstop.yaml:6: suppliers[0].config.certs[1]: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("file:%s: %v, want %q", path, err, want)
		}
	}
}
