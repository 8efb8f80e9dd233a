package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

// TestProblemsNameLineAndField goes through everything that a file can get wrong.
func TestProblemsNameLineAndField(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	env.TestMode = true
	supplier := func(rest string) string {
		return "suppliers:\n- code: a\n  kind: fake\n  config: { mch_id: x }\n  " + rest
	}
	merchant := func(rest string) string {
		return "merchants:\n- code: m\n  signing_secret: " + secretA + "\n  " + rest
	}
	notify := func(rest string) string { return merchant("notify:\n    " + rest) }
	endpoint := func(rest string) string { return notify("endpoints:\n    - { " + rest + " }") }
	env.Channels = map[string]func(string) error{"bus": func(url string) error {
		if url == "bus:7" {
			return nil
		}
		return errors.New("a bus has no https")
	}}
	env.Credentials = map[string]func(map[string]string) error{"bus": func(map[string]string) error {
		return errors.New(
			"a bus wants a ticket")
	}}
	for _, c := range []struct{ file, want string }{
		{"", ":1: the file declares nothing"},
		{"merchants: [", "not valid YAML"},
		{"a: 1\n---\nb: 2", "more than one document"},
		{"merchant: []", ":1: merchant: unknown field; known fields are suppliers, merchants, skus, accounts, subscriptions"},
		{"skus: []\nskus: []", ":2: skus: set twice"},
		{"skus: { sku: a }", ":1: skus: must be a list"},
		{"skus: [a]", ":1: skus[0]: must be a set of named fields: sku, stock"},
		{"skus:\n- &x { sku: a, stock: 1 }\n- *x", ":3: skus[1]: aliases"},
		{"skus: [{ sku: !!str a, stock: 1 }]", "skus[0].sku: tags"},

		{merchant("api_key: sk_test_0123456789abcdef0123"), ":4: merchants[0].api_key: keys of test mode begin with sk_test_"},
		{supplier("colour: red"), ":5: suppliers[0].colour: unknown field"},
		{supplier("enabled: maybe"), ":5: suppliers[0].enabled: use true or false"},
		{supplier("allow_ips: [1.2.3.4/8]"), `suppliers[0].allow_ips[0]: 1.2.3.4/8 has bits set beyond its prefix length: use 1.0.0.0/8`},
		{supplier("allow_ips: [elsewhere]"), `suppliers[0].allow_ips[0]: "elsewhere": use a range`},
		{"suppliers: [{ code: A, kind: fake, config: { mch_id: x } }]", `suppliers[0].code: "A": use 1 to 64`},
		{"suppliers: [{ kind: fake, config: { mch_id: x } }]", "suppliers[0].code: missing"},
		{"suppliers: [{ code: a, config: { mch_id: x } }]", "suppliers[0].kind: missing"},
		{"suppliers: [{ code: a, kind: paypal }]", `suppliers[0].kind: unknown supplier kind "paypal": known are fake`},
		{"suppliers: [{ code: a, kind: fake }]", "suppliers[0].config.mch_id: missing"},
		{
			"suppliers:\n- code: a\n  kind: fake\n  config:\n    mch_id: x\n    reply:\n      success: bad",
			":7: suppliers[0].config.reply.success: is bad",
		},
		{"suppliers:\n- code: a\n  kind: fake\n  config:\n    mch_id: x\n    nope: 1", ":6: suppliers[0].config.nope: unknown field"},
		{
			"suppliers:\n- code: a\n  kind: fake\n  config:\n    mch_id: x\n    tries: many",
			":6: suppliers[0].config.tries: a number is wanted here",
		},
		{"suppliers:\n- code: a\n  kind: fake\n  config: [x]", ":4: suppliers[0].config: must be a set of named fields"},
		{
			"suppliers:\n- { code: a, kind: fake, config: { mch_id: x } }\n- { code: a, kind: fake, config: { mch_id: x } }",
			":3: suppliers[1].code: the same as in suppliers[0].code",
		},

		{merchant("api_key: short"), ":4: merchants[0].api_key: 5 characters: use a random text of at least 20"},
		{merchant("api_key: 'sk_0123456789 0123456789'"), ":4: merchants[0].api_key: character 14 of 24 is a blank: copy the value alone"},
		{merchant(`api_key: "sk_01234567890123456789\u00a0"`), "merchants[0].api_key: character 24 of 24 is an invisible character (U+00A0)"},
		{merchant(`payout_key: "\ufeffsk_01234567890123456789"`), "merchants[0].payout_key: character 1 of 24 is an invisible character (U+FEFF)"},
		{"merchants:\n- code: m\n  signing_secret: |\n    " + secretA + "\n", ":3: merchants[0].signing_secret: character 51 of 51 is a line break"},
		{
			"merchants: [{ code: m, signing_secrets: [" + secretA + ", '" + secretB + " '] }]",
			"merchants[0].signing_secrets[1]: character 51 of 51 is a blank",
		},
		{
			"suppliers: [{ code: a, kind: fake, config: { mch_id: x, key: 'k ' } }]",
			"suppliers[0].config.key: character 2 of 2 is a blank: copy the value alone",
		},
		{
			`suppliers: [{ code: a, kind: fake, config: { mch_id: x, key: [a, "b\n"] } }]`,
			"suppliers[0].config.key[1]: character 2 of 2 is a line break",
		},
		{endpoint(`name: b, url: "https://b.example", headers: { X-Tenant: "seven\u00a0" }`), "headers.X-Tenant: character 6 of 6 is an invisible"},
		{endpoint(`name: b, url: "https://b.example", credentials: { token: " t" }`), "credentials.token: character 1 of 2 is a blank"},
		{merchant("signing_secrets: [" + secretB + "]"), "give signing_secret or signing_secrets, not both"},
		{"merchants: [{ code: m }]", "merchants[0].signing_secret: missing"},
		{"merchants: [{ code: m, signing_secret: plain }]", "merchants[0].signing_secret: bad signing secret: must begin with whsec_"},
		{"merchants: [{ code: m, signing_secrets: [] }]", "give one secret, or two"},
		{
			"merchants: [{ code: m, signing_secrets: [" + secretA + ", " + secretA + "] }]",
			"merchants[0].signing_secrets[1]: both secrets are the same",
		},
		{notify("urls: [https://a.example, ftp://b]"), ":5: merchants[0].notify.urls[1]: only https is reached"},
		{notify("ack: loud"), `:5: merchants[0].notify.ack: "loud" is not known; use status or text`},
		{notify("format: xml"), "use standard or form"},
		{notify("schedule: weekly"), `:5: merchants[0].notify.schedule: "weekly" is not a preset`},
		{notify("schedule: { a: 1 }"), "merchants[0].notify.schedule: must be a preset"},
		{notify("timeout: 11s"), ":5: merchants[0].notify.timeout: use a duration from 1s to 10s"},
		{notify("timeout: 0.5s"), "use a duration from 1s to 10s"},
		{notify("max_in_flight: 0"), "use a whole number from 1 to 1000"},
		{notify("rate_limit: fast"), "use a rate from 1/s to 100000/s"},
		{notify("rate_limit: 0/s"), "use a rate from 1/s to 100000/s"},
		{notify("breaker: {failures: 0}"), "use a whole number from 1 to 1000"},
		{notify("breaker: {open: 10ms}"), "use a duration from 1s to 24h0m0s"},
		{notify("breaker: {rate: 101}"), "use a whole number from 0 to 100"},
		{notify("breaker: {least: 0}"), "use a whole number from 1 to 100000"},
		{notify("breaker: {often: 1}"), "breaker"},
		{"merchants:\n- { code: a, api_key: " + keyM1 + ", signing_secret: " + secretA + " }\n- { code: b, api_key: " + keyM1 +
			", signing_secret: " + secretA + " }", ":3: merchants[1].api_key: the same as in merchants[0].api_key"},

		{notify("balance: random"), `:5: merchants[0].notify.balance: "random" is not known; use failover or weighted or all`},
		{notify("events: [order.paid, order.eaten]"), `:5: merchants[0].notify.events[1]: "order.eaten" is not known; use order.paid or`},
		{endpoint("name: crm, url: ftp://b"), ":6: merchants[0].notify.endpoints[0].url: only https is reached"},
		{
			endpoint("name: crm, url: https://b, channel: pigeon"),
			`merchants[0].notify.endpoints[0].channel: "pigeon" is not known; use webhook or bus`,
		},
		{endpoint("name: crm, url: https://b, channel: bus"), "merchants[0].notify.endpoints[0].url: a bus has no https"},
		{
			endpoint("name: crm, url: bus:7, channel: bus, credentials: { key: a }"),
			"merchants[0].notify.endpoints[0].credentials: a bus wants a ticket",
		},
		{
			endpoint("name: crm, url: https://b, digest: 1h"),
			"merchants[0].notify.endpoints[0].digest: only the email channel supports digests",
		},
		{endpoint("name: crm, url: https://b, digest: 1s"), "merchants[0].notify.endpoints[0].digest: use a duration from 10s to 24h"},
		{endpoint("url: https://b"), "merchants[0].notify.endpoints[0].name: missing"},
		{endpoint("name: crm, url: https://b, weight: 0"), "weight: use a whole number from 1 to 100"},
		{
			endpoint("name: crm, url: https://b, credentials: { key: [a] }"),
			"merchants[0].notify.endpoints[0].credentials.key: must be a single value",
		},
		{endpoint("name: crm, url: https://b, headers: [a]"), "merchants[0].notify.endpoints[0].headers: must be a set of named fields"},
		{endpoint("name: crm, url: https://b, headers: { Host: b }"), "merchants[0].notify.endpoints[0].headers: Host is set by us"},
		{endpoint("name: crm, url: https://b, format: xml"), "format: \"xml\" is not known; use standard or form or form-md5"},
		{endpoint("name: crm, url: https://b, client_key: x"), "client_cert: missing: a key needs its certificate"},
		{endpoint("name: crm, url: https://b, client_cert: x, client_key: " + secretA), "client_cert: certificate and key are not a pair"},
		{endpoint("name: crm, url: https://b, client_cert: x"), "client_key: missing: none is stored for this address"},
		{
			endpoint("name: crm, url: https://b }\n    - { name: crm, url: https://c"),
			":7: merchants[0].notify.endpoints[1].name: the same as in",
		},

		{
			"subscriptions: [{ code: crm, signing_secret: " + secretA + " }]",
			"subscriptions[0].endpoints: missing: give at least one endpoint",
		},
		{"subscriptions: [{ code: crm, urls: [https://a] }]", "subscriptions[0].signing_secret: missing: webhooks are signed with it"},
		{
			"subscriptions:\n- code: crm\n  signing_secret: " + secretA + "\n  urls: [https://a]\n  merchants: [nobody]",
			`:5: subscriptions[0].merchants[0]: there is no merchant "nobody"`,
		},
		{"subscriptions: [{ code: crm, urls: [https://a], merchants: some }]", "subscriptions[0].merchants: must be a list"},
		{"subscriptions: [{ code: crm, urls: [https://a], merchants: [] }]", "subscriptions[0].merchants: use all, or a list of merchants"},

		{"skus: [{ sku: a }]", "skus[0].stock: missing"},
		{"skus: [{ sku: a, stock: -1 }]", "skus[0].stock: use a whole number"},
		{"skus: [{ sku: a, stock: 1.5 }]", "skus[0].stock: use a whole number"},
		{`skus: [{ sku: "a\nb", stock: 1 }]`, "control characters"},
		{"accounts: [{ merchant: m, currency: cny, balance: 1 }]", "accounts[0].currency: unknown currency"},
		{"accounts: [{ merchant: m, currency: CNY }]", "accounts[0].balance: missing"},
		{
			"accounts:\n- { merchant: m, currency: CNY, balance: 1 }\n- { merchant: m, currency: CNY, balance: 2 }",
			":3: accounts[1]: the same as in accounts[0]",
		},
		{"accounts: [{ merchant: m, currency: CNY, balance: 1 }]", `accounts[0].merchant: there is no merchant "m"`},

		{"approval: []", "approval: must be a set of named fields: second_person, apply, typed_above, second_above"},
		{"approval: { second_person: maybe }", "approval.second_person: use true or false"},
		{"approval: { third_person: true }", "approval.third_person: unknown field"},
		{"approval: { typed_above: { CNY: 1 } }", "approval.typed_above: must be a list"},
		{"approval: { typed_above: [{ currency: CNY }] }", "approval.typed_above[0].amount: missing: in minor units"},
		{"approval: { typed_above: [{ currency: cny, amount: 1 }] }", "approval.typed_above[0].currency: unknown currency"},
		{
			"approval: { typed_above: [{ currency: CNY, amount: 1 }, { currency: CNY, amount: 2 }] }",
			"approval.typed_above[1].currency: the same as in approval.typed_above[0].currency",
		},
		{"approval: { second_above: [{ amount: 1 }] }", "approval.second_above[0].currency: missing"},
		{"approval: { second_above: [{ currency: CNY, amount: -1 }] }", "approval.second_above[0].amount: use a whole number from 0"},
		{
			"approval: { second_above: [{ currency: CNY, batch_rows: 1e3 }] }",
			"approval.second_above[0].batch_rows: use a whole number from 0 to 1000000",
		},
	} {
		err := Apply(t.Context(), env, asFile(c.file))
		if err == nil || !strings.HasPrefix(err.Error(), "backstop.yaml:") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.file, err, c.want)
		}
		if strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s\n one mistake, several problems: %v", c.file, err)
		}
		if strings.Contains(fmt.Sprint(err), secretA) || strings.Contains(fmt.Sprint(err), keyM1) {
			t.Errorf("the error repeats a secret: %v", err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("invalid files printed %q", out)
	}
}

func TestAllProblemsAreReportedUpToABound(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, dbtest.SQLite(t))
	file := "skus:\n" + strings.Repeat("- { sku: '', stock: -1 }\n", 30)
	var invalid *Invalid
	if err := Apply(t.Context(), env, asFile(file)); !errors.As(err, &invalid) {
		t.Fatalf("err = %v", err)
	}
	if len(invalid.Problems) != maxProblems || invalid.More != 60-maxProblems {
		t.Errorf("%d problems shown and %d more, want %d and %d", len(invalid.Problems), invalid.More, maxProblems, 60-maxProblems)
	}
	if invalid.Problems[0] != "backstop.yaml:2: skus[0].sku: missing" {
		t.Errorf("first problem: %s", invalid.Problems[0])
	}
}

func TestAFileHasAtMostTenThousandEntries(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, dbtest.SQLite(t))
	var b strings.Builder
	b.WriteString("skus:\n")
	for i := range maxEntries {
		fmt.Fprintf(&b, "- { sku: S%d, stock: 1 }\n", i)
	}
	if err := Apply(t.Context(), env, asFile(b.String())); err != nil {
		t.Fatalf("%d entries: %v", maxEntries, err)
	}
	b.WriteString("- { sku: one-more, stock: 1 }\n")
	if err := Apply(t.Context(), env, asFile(b.String())); err == nil || !strings.Contains(err.Error(), "split it") {
		t.Errorf("%d entries: %v", maxEntries+1, err)
	}
}

// Whatever a file contains, it is read or refused with an error.
func FuzzDeclare(f *testing.F) {
	for _, s := range []string{
		whole, "", "# nothing", "---", "--- \n...", "a: &x [*x]", "skus: [{sku: a, stock: 1e3}]", "? {a: b}\n: c",
		"merchants: [{code: m, notify: {schedule: [1s, day]}}]", "!!binary x", "<<: {skus: []}", "\xef\xbb\xbfskus: []",
		"skus:\n- {sku: \"\\0\", stock: 0x7fffffffffffffff}",
	} {
		f.Add(s)
	}
	env := Env{Kinds: kinds, CheckURL: func(string) error { return nil }}.settings()
	f.Fuzz(func(t *testing.T, s string) {
		d, err := declare(env, asFile(s), newKeyFiles("."), settings.Nothing(env))
		if wrong := new(Invalid); err != nil && !errors.As(err, &wrong) {
			t.Fatalf("%q: %v", s, err)
		}
		if (d == nil) != (err != nil) {
			t.Fatalf("%q: %v, %v", s, d, err)
		}
	})
}
