package apply

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// exported returns the export of the stored settings, in a folder with its secrets.
func exported(t *testing.T, env Env, apiKeys map[string]string) File {
	t.Helper()
	var text bytes.Buffer
	if err := Export(t.Context(), env, &text); err != nil {
		t.Fatal(err)
	}
	stored, err := settings.Read(t.Context(), env.settings())
	if err != nil {
		t.Fatal(err)
	}
	x, folder := &exporter{taken: map[string]bool{}}, t.TempDir()
	if _, err := x.file(t.Context(), env, stored); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, r := range x.refs {
		plain := r.secret.Plain()
		if r.field == "api_key" {
			plain = apiKeys[r.object.ID]
		}
		if r.field == "payout_key" {
			plain = keyM2
		}
		if plain == "" || strings.Contains(text.String(), plain) || !strings.Contains(text.String(), r.path) {
			t.Fatalf("%s, %s is lost, written or not named in\n%s", r.object, r.field, text.String())
		}
		if err := os.WriteFile(filepath.Join(folder, r.path), []byte(plain+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return File{Name: "export.yaml", Dir: folder, Text: text.Bytes()}
}

func differs(t *testing.T, env Env, out *bytes.Buffer, f File) bool {
	t.Helper()
	out.Reset()
	is, err := DryRun(t.Context(), env, f)
	if err != nil {
		t.Fatalf("%v in\n%s", err, f.Text)
	}
	return is
}

func TestWhatIsExportedIsWhatIsStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		pair := clientPair(t)
		for _, file := range []string{whole, strings.NewReplacer("code: m1", "code: m9", "form_key: k",
			"form_key: credential-of-k").Replace(kept), strings.ReplaceAll(routedFile, "m1", "m2")} {
			file = strings.NewReplacer("merchants: [m1]", "merchants: all", secretB+", urls",
				secretB+", schedule: quick, urls").Replace(file)
			file = strings.Replace(file, "code: m9\n    name: Galaxy Mall\n    api_key: "+keyM1,
				"code: m9\n    name: Galaxy Mall\n    api_key: "+keyM2, 1)
			if err := Apply(t.Context(), env, File{Name: "a.yaml", Dir: pair, Text: []byte(file)}); err != nil {
				t.Fatal(err)
			}
		}
		keys := map[string]string{"m1": keyM1, "m9": keyM2}
		f := exported(t, env, keys)
		if differs(t, env, out, f) || strings.Contains(out.String(), "changed\n") && !strings.Contains(out.String(), "unchanged\n") {
			t.Errorf("it differs: %s\n%s", out, f.Text)
		}
		if again := exported(t, env, keys); string(again.Text) != string(f.Text) {
			t.Errorf("two exports differ:\n%s\n%s", f.Text, again.Text)
		}
		// The negative controls: a field, a secret, and one that is taken away.
		for _, c := range [][2]string{
			{"weight: 5", "weight: 6"},
			{"rate_limit: 7/s", "rate_limit: null"},
			{"stock: 100", "stock: 100\n  - sku: new\n    stock: 1"},
		} {
			changed := f
			if changed.Text = []byte(strings.Replace(string(f.Text), c[0], c[1], 1)); !differs(t, env, out, changed) {
				t.Errorf("%s is no difference in\n%s", c, changed.Text)
			}
		}
		path := filepath.Join(f.Dir, "secrets", "merchant-m2.notify.endpoints.backup.credentials.form_key")
		if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !differs(t, env, out, f) || !strings.Contains(out.String(), "  notify.endpoints.backup.credentials.form_key: set → changed\n") ||
			strings.Contains(out.String(), "another") {
			t.Errorf("a changed secret: %s", out)
		}
		// Applied to an empty installation, it makes the same one.
		if err := os.WriteFile(path, []byte("credential-of-nine"), 0o600); err != nil {
			t.Fatal(err)
		}
		fresh, _ := newEnv(t, dbtest.SQLite(t))
		if err := Apply(t.Context(), fresh, f); err != nil {
			t.Fatal(err)
		}
		if again := exported(t, fresh, keys); string(again.Text) != string(f.Text) {
			t.Errorf("applied elsewhere and exported:\n%s\nwant\n%s", again.Text, f.Text)
		}
	})
}

// anyNotify draws any of the optional fields of notify.
func anyNotify(t *rapid.T) map[string]any {
	n := map[string]any{}
	one := func(label string, words ...any) {
		if rapid.Bool().Draw(t, label) {
			n[label] = rapid.SampledFrom(words).Draw(t, label+" is")
		}
	}
	events := []any{[]string{}, []string{"order.paid"}, []string{"order.closed", "order.failed"}}
	odd := []any{"null", "true", "0x1f", " ", "a: b # c", "'", "~", "茶 ☕", "- x", "file", "1e3", "{}"}
	one("urls", []string{}, []string{"https://a.example"}, []string{"https://a.example?token=1", "https://b.example"})
	one("ack", "status", "text")
	one("ack_text", odd...)
	one("format", "standard", "form", "form-md5")
	one("schedule", "day", "quick", []string{"100ms"}, []string{"1s", "90s", "1h30m"})
	one("timeout", "1s", "1500ms", "10s")
	one("max_in_flight", 1, 1000)
	one("rate_limit", "1/s", "100000/s")
	one("events", events...)
	one("balance", "failover", "weighted", "all")
	breaker := map[string]any{}
	for field, words := range map[string][]any{
		"failures": {1, 1000}, "open": {"1s", "24h"}, "rate": {0, 1, 100}, "window": {"1s", "1h"},
		"least": {1, 100000}, "slow": {"100ms", "10s"},
	} {
		if rapid.Bool().Draw(t, field) {
			breaker[field] = rapid.SampledFrom(words).Draw(t, field+" is")
		}
	}
	one("breaker", breaker)
	endpoints := []any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		e := map[string]any{"name": fmt.Sprintf("e%d", i), "url": "https://e.example/"}
		for field, words := range map[string][]any{
			"channel": {"webhook", "email"}, "events": events, "weight": {1, 100}, "format": {"standard", "form"}, "digest": {"10s", "24h"},
			"headers":     {map[string]any{}, map[string]any{"X-Token": "header-of-one", "x-other": "header-of-two"}},
			"credentials": {map[string]any{}, map[string]any{"a b/c": "credential-one", "a_b_c": "credential-two"}},
		} {
			if rapid.Bool().Draw(t, field) {
				e[field] = rapid.SampledFrom(words).Draw(t, field+" is")
			}
		}
		if e["channel"] != "email" {
			delete(e, "digest")
		}
		endpoints = append(endpoints, e)
	}
	n["endpoints"] = endpoints
	return n
}

func anyFile(t *rapid.T) map[string]any {
	odd := rapid.SampledFrom([]string{
		"null", "true", "12", " ", "a: b # c", "'\"", "~", "茶 ☕", "- x", "1e3", "{}", "two\nlines\n", "0x1f",
		"1_000",
	})
	config := map[string]any{"mch_id": odd.Draw(t, "mch_id"), "tries": rapid.Int64().Draw(t, "tries")}
	if rapid.Bool().Draw(t, "secrets") {
		config["key"], config["certs"] = "secret-key-1", []string{"secret-cert-1", "secret-cert-2"}
	}
	supplier := map[string]any{"code": "s", "kind": "fake", "enabled": rapid.Bool().Draw(t, "enabled"), "config": config}
	if rapid.Bool().Draw(t, "allow_ips") {
		supplier["allow_ips"] = []string{"10.0.0.0/8", "2001:db8::/32", "192.0.2.1"}
	}
	merchant := map[string]any{
		"code": "m", "notify": anyNotify(t),
		"signing_secrets": []string{secretA, secretB}[:rapid.IntRange(1, 2).Draw(t, "signing")],
	}
	if rapid.Bool().Draw(t, "name") {
		merchant["name"] = rapid.SampledFrom([]string{"null", "true", "12", "a: b # c", "茶 ☕", "- x"}).Draw(t, "name is")
	}
	if rapid.Bool().Draw(t, "api_key") {
		merchant["api_key"] = keyM1
	}
	anyFunds(t, merchant)
	subscription := anyNotify(t)
	subscription["code"], subscription["enabled"], subscription["signing_secret"] = "e", rapid.Bool().Draw(t, "e enabled"), secretB
	subscription["merchants"] = rapid.SampledFrom([]any{"all", []string{"m"}}).Draw(t, "merchants")
	subscription["urls"] = []string{"https://e.example/"}
	return map[string]any{
		"suppliers": []any{supplier}, "merchants": []any{merchant}, "subscriptions": []any{subscription},
		"skus": []any{map[string]any{
			"sku":   odd.Filter(func(s string) bool { return !strings.Contains(s, "\n") }).Draw(t, "sku"),
			"stock": rapid.Int64Range(0, 1e12).Draw(t, "stock"),
		}},
		"accounts": []any{map[string]any{"merchant": "m", "currency": "JPY", "balance": rapid.Int64Range(0, 1e15).Draw(t, "balance")}},
		"approval": anyApproval(t), "payout_accounts": anyPayoutAccounts(t),
	}
}

// anyFunds draws any fees, limits and settings for payouts.
func anyFunds(t *rapid.T, merchant map[string]any) {
	if rapid.Bool().Draw(t, "payout_key") {
		merchant["payout_key"] = keyM2
	}
	if rapid.Bool().Draw(t, "payout_ips") {
		merchant["payout_ips"] = []string{"10.0.0.0/8", "2001:db8::/32", "192.0.2.1"}[:rapid.IntRange(0, 3).Draw(t, "payout_ips are")]
	}
	amount := rapid.Int64Range(0, 1e15)
	for _, list := range []string{"fees", "payout_fees", "limits"} {
		if !rapid.Bool().Draw(t, list) {
			continue
		}
		all := []any{}
		for _, name := range []string{"*", "s"}[:rapid.IntRange(0, 2).Draw(t, list+" are")] {
			e := map[string]any{"supplier": name, "rate": fmt.Sprintf("%d.%04d%%", rapid.IntRange(0, 99).Draw(t, "percent"),
				rapid.IntRange(0, 9999).Draw(t, "decimals")), "fixed": amount.Draw(t, "fixed")}
			if list == "fees" {
				e["refund"] = rapid.SampledFrom([]string{"keep", "return"}).Draw(t, "refund")
			}
			if list == "limits" {
				e = map[string]any{"currency": map[string]string{"*": "CNY", "s": "KWD"}[name]}
				for _, f := range []string{"payout_each", "payout_day", "payout_auto", "refund_auto", "refund_auto_day", "overdraft"} {
					if rapid.Bool().Draw(t, f) {
						e[f] = amount.Draw(t, f+" is")
					}
				}
			}
			all = append(all, e)
		}
		merchant[list] = all
	}
}

func anyPayoutAccounts(t *rapid.T) []any {
	all := []any{}
	for _, code := range []string{"main", "other"}[:rapid.IntRange(0, 2).Draw(t, "payout_accounts")] {
		a := map[string]any{
			"merchant": "m", "code": code, "kind": "bank_card",
			"holder": rapid.SampledFrom([]string{"null", "12", "a: b # c", "茶 ☕"}).Draw(t, "holder"),
			"number": rapid.SampledFrom([]string{"6222000011114711", "0x1f-1", "secret@pay.example"}).Draw(t, "number"),
			"bank":   rapid.SampledFrom([]string{"true", "ICBC"}).Draw(t, "bank"),
		}
		if rapid.Bool().Draw(t, "account enabled") {
			a["enabled"] = rapid.Bool().Draw(t, "account enabled is")
		}
		all = append(all, a)
	}
	return all
}

// anyApproval draws any rules for decisions; changes never wait.
func anyApproval(t *rapid.T) map[string]any {
	a := map[string]any{}
	if rapid.Bool().Draw(t, "second_person") {
		a["second_person"] = rapid.Bool().Draw(t, "second_person is")
	}
	for list, fields := range map[string][]string{"typed_above": {"amount"}, "second_above": {"amount", "batch_amount", "batch_rows"}} {
		all := []any{}
		for _, currency := range []string{"CNY", "JPY", "KWD"}[:rapid.IntRange(0, 3).Draw(t, list)] {
			e := map[string]any{"currency": currency}
			for _, f := range fields {
				if list == "typed_above" || rapid.Bool().Draw(t, f) {
					e[f] = rapid.Int64Range(0, 1e6).Draw(t, f+" is")
				}
			}
			all = append(all, e)
		}
		a[list] = all
	}
	return a
}

// Whatever is applied, applying its export changes nothing.
func TestAnySettingsAreExportedAsTheyAre(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		rapid.Check(t, func(r *rapid.T) {
			for _, table := range []string{
				"subscriptions", "merchants", "suppliers", "skus", "transfers", "approval_rules",
				"payout_accounts",
			} {
				if _, err := d.NewRaw("DELETE FROM " + table).Exec(t.Context()); err != nil {
					r.Fatal(err)
				}
			}
			env, out := newEnv(t, d)
			env.Channels = map[string]func(string) error{"email": func(string) error { return nil }}
			first, err := yaml.Marshal(anyFile(r))
			if err != nil {
				r.Fatal(err)
			}
			if err := Apply(t.Context(), env, File{Name: "first.yaml", Dir: ".", Text: first}); err != nil {
				r.Fatalf("%v in\n%s", err, first)
			}
			if differs(t, env, out, File{Name: "first.yaml", Dir: ".", Text: first}) {
				r.Fatalf("what was applied differs: %s\n%s", out, first)
			}
			f := exported(t, env, map[string]string{"m": keyM1})
			if differs(t, env, out, f) {
				r.Fatalf("what is exported differs: %s\n%s\nfrom\n%s", out, f.Text, first)
			}
		})
	})
}

func TestWhatCannotBeReadIsNotExported(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	mustApply(t, env, out, whole)
	if _, err := env.DB.NewRaw("UPDATE merchants SET notify = '{'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), env, out); err == nil ||
		!strings.Contains(err.Error(), "merchant m1: the stored values of notify cannot be read") {
		t.Errorf("err = %v", errors.Unwrap(err))
	}
}
