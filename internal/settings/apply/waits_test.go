package apply

import (
	"bytes"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

// guarded is an installation with an order, two leads and an admin, whose changes wait.
type guarded struct {
	*testing.T
	env    Env
	out    *bytes.Buffer
	people map[string]act.Actor
}

const (
	approvalOn = "approval: { apply: true }\n"
	checker    = "operator:lu"
)

func newGuarded(t *testing.T, d *db.DB) *guarded {
	t.Helper()
	env, out := newEnv(t, d)
	env.Life = time.Hour
	g := &guarded{T: t, env: env, out: out, people: map[string]act.Actor{}}
	for i, op := range []access.Operator{
		{Name: "lu", Roles: access.Lead},
		{Name: "mo", Roles: access.Lead},
		{Name: "ada", Roles: access.Admin},
	} {
		op.ID = int64(i + 1)
		if _, err := d.NewInsert().Model(&op).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.people[op.Name] = act.Actor{Name: "operator:" + op.Name, ID: op.ID, Roles: op.Roles}
	}
	g.env.Token = g.token("ada")
	g.apply(whole)
	g.order()
	g.want(g.apply(approvalOn), "approval changed: apply")
	return g
}

// token makes a personal token of an operator.
func (g *guarded) token(name string) string {
	g.Helper()
	token, err := access.NewPersonalTokens(g.env.DB, g.env.Keys).Add(g.Context(), name, time.Hour)
	if err != nil {
		g.Fatal(err)
	}
	return token
}

func (g *guarded) order() {
	g.Helper()
	g.exec("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)" +
		" VALUES (1, 'ord_1', 1, 'o', 1, 1, 'CNY', 2, '', '', 'paid', 2, 0, 0)")
}

func (g *guarded) exec(query string, args ...any) {
	g.Helper()
	if _, err := g.env.DB.NewRaw(query, args...).Exec(g.Context()); err != nil {
		g.Fatal(err)
	}
}

// apply applies a file; proposals are printed without their digits.
func (g *guarded) apply(file string) []string {
	g.Helper()
	return mustApply(g.T, g.env, g.out, file)
}

// want compares lines; "apr_" stands for any proposal.
func (g *guarded) want(lines []string, want ...string) {
	g.Helper()
	is := slices.Clone(lines)
	for i, line := range is {
		if before, _, ok := strings.Cut(line, "proposed apr_"); ok {
			is[i] = before + "proposed apr_"
		}
	}
	wantLines(g.T, is, want...)
}

func (g *guarded) desk() *approval.Desk {
	g.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		g.Fatal(err)
	}
	log := audit.New(g.env.DB, g.env.Keys)
	rules := rulesOf(g.T, g.env)
	return approval.NewDesk(approval.Options{
		DB: g.env.DB, Audit: log, Policy: policy, Rules: func() settings.Rules { return rules }, Life: time.Hour,
		Operators: access.NewOperators(g.env.DB, log), Log: slog.New(slog.DiscardHandler),
	}, Decision(g.env))
}

// last returns the newest proposal.
func (g *guarded) last() *approval.Approval {
	g.Helper()
	all, err := approval.List(g.Context(), g.env.DB, approval.Query{Limit: 1})
	if err != nil || len(all) != 1 {
		g.Fatalf("%d proposals, %v", len(all), err)
	}
	return all[0]
}

func (g *guarded) approve(a *approval.Approval, by string) (*approval.Approval, error) {
	g.Helper()
	return g.desk().Approve(g.Context(), approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "as it was agreed", By: g.people[by]})
}

func (g *guarded) mustApprove(a *approval.Approval) *approval.Approval {
	g.Helper()
	a, err := g.approve(a, "lu")
	if err != nil || a.State != approval.Done {
		g.Fatalf("approved: %+v, %v", a, err)
	}
	return a
}

func (g *guarded) none(table string) {
	g.Helper()
	if n := count(g.T, g.env.DB, "SELECT count(*) FROM "+table); n != 0 {
		g.Errorf("%d rows in %s", n, table)
	}
}

// changesOf has a change of each field that a file may change, by section and field.
var changesOf = map[string][2]string{
	"suppliers name":          {"kind: fake", "kind: fake\n    name: Quick Pay"},
	"suppliers kind":          {"kind: fake", "kind: other"},
	"suppliers allow_ips":     {"10.0.0.7", "10.0.0.8"},
	"suppliers config":        {"key: top-secret", "key: another-top-secret"},
	"suppliers enabled":       {"kind: fake", "kind: fake\n    enabled: false"},
	"suppliers query_after":   {"kind: fake", "kind: fake\n    query_after: 3m"},
	"suppliers query_rate":    {"kind: fake", "kind: fake\n    query_rate: 3/s"},
	"suppliers ask_pending":   {"kind: fake", "kind: fake\n    ask_pending: false"},
	"suppliers refund_repeat": {"kind: fake", "kind: fake\n    refund_repeat: true"},
	"suppliers payout_repeat": {"kind: fake", "kind: fake\n    payout_repeat: true"},

	"suppliers payout_query_after": {"kind: fake", "kind: fake\n    payout_query_after: 1h"},

	"suppliers fees": {"kind: fake", "kind: fake\n    fees: { rate: 0.6% }"},

	"merchants fees":             {"name: Galaxy", "fees: [{ fixed: 3 }]\n    name: Galaxy"},
	"merchants limits":           {"name: Galaxy", "limits: [{ currency: CNY, overdraft: 3 }]\n    name: Galaxy"},
	"merchants refund_window":    {"name: Galaxy", "refund_window: 720h\n    name: Galaxy"},
	"merchants name":             {"Galaxy Mall", "Galaxy Hall"},
	"merchants api_key":          {keyM1, keyM2},
	"merchants signing_secret":   {secretA, secretB},
	"merchants payout_fees":      {"name: Galaxy", "payout_fees: [{ fixed: 3 }]\n    name: Galaxy"},
	"merchants payout_key":       {"name: Galaxy", "payout_key: " + keyM2 + "\n    name: Galaxy"},
	"merchants payout_ips":       {"name: Galaxy", "payout_ips: [10.0.0.0/8]\n    name: Galaxy"},
	"merchants resend_when_back": {"name: Galaxy", "resend_when_back: false\n    name: Galaxy"},

	"subscriptions name":           {"name: CRM", "name: PRM"},
	"subscriptions enabled":        {"name: CRM", "name: CRM\n    enabled: false"},
	"subscriptions merchants":      {"name: CRM", "name: CRM\n    merchants: [m1]"},
	"subscriptions signing_secret": {secretB, secretA},

	"payout_accounts kind":    {"bank_card", "alipay"},
	"payout_accounts holder":  {"Galaxy Ltd", "Galaxy Inc"},
	"payout_accounts number":  {"6222000011114711", "6222000011110815"},
	"payout_accounts bank":    {"ICBC", "ABC"},
	"payout_accounts enabled": {"enabled: true", "enabled: false"},

	"roles may":     {"may: [order.view]", "may: [order.view, order.query]"},
	"roles enabled": {"name: night", "name: night\n    enabled: false"},

	"approval second_person": {"apply: true", "apply: true, second_person: false"},
	"approval apply":         {"apply: true", "apply: false"},
	"approval typed_above":   {"apply: true", "apply: true, typed_above: [{ currency: CNY, amount: 7 }]"},
	"approval second_above":  {"apply: true", "apply: true, second_above: [{ currency: CNY, batch_rows: 7 }]"},
}

// notifyChanges has the changes of a recipient's notify; NL is a line break.
var notifyChanges = map[string][2]string{
	"urls":          {"https://URL.example/notify", "https://other.example/notify"},
	"ack":           {"urls:", "ack: textNLurls:"},
	"ack_text":      {"urls:", "ack_text: OKNLurls:"},
	"format":        {"urls:", "format: formNLurls:"},
	"schedule":      {"urls:", "schedule: quickNLurls:"},
	"timeout":       {"timeout: 5s", "timeout: 6s"},
	"max_in_flight": {"urls:", "max_in_flight: 7NLurls:"},
	"rate_limit":    {"urls:", "rate_limit: 7/sNLurls:"},
	"breaker":       {"urls:", "breaker: { failures: 7 }NLurls:"},
	"events":        {"urls:", "events: [order.paid]NLurls:"},
	"balance":       {"urls:", "balance: allNLurls:"},
	"endpoints":     {"urls:", "endpoints: [{ name: b, url: https://b.example }]NLurls:"},
}

const everything = `
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
      urls: [https://URL.example/notify]
      timeout: 5s
subscriptions:
  - code: crm
    name: CRM
    signing_secret: ` + secretB + `
    urls: [https://URL.example/notify]
    timeout: 5s
payout_accounts:
  - merchant: m1
    code: main
    kind: bank_card
    holder: Galaxy Ltd
    number: "6222000011114711"
    bank: ICBC
    enabled: true
roles:
  - name: night
    may: [order.view]
` + approvalOn

// TestWhatWaitsAndWhatDoesNot changes each field of the file by itself.
func TestWhatWaitsAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	waits := []string{
		"suppliers kind", "suppliers allow_ips", "suppliers config", "suppliers fees",
		"merchants api_key", "merchants signing_secret", "merchants notify.urls", "merchants notify.endpoints", "merchants fees",
		"merchants limits",
		"merchants payout_fees", "merchants payout_key", "merchants payout_ips",
		"subscriptions signing_secret", "subscriptions urls", "subscriptions endpoints",
		"payout_accounts kind", "payout_accounts holder", "payout_accounts number", "payout_accounts bank", "payout_accounts enabled",
		"roles may",
		"approval second_person", "approval apply", "approval typed_above", "approval second_above",
	}
	if is := settings.WaitingFields(); !slices.Equal(is, waits) {
		t.Fatalf("fields that wait\n%q\nwant\n%q", is, waits)
	}
	var fields []string
	for _, section := range settings.Fields(reflect.TypeFor[settings.File]()) {
		if section.Word == "skus" || section.Word == "accounts" { // never set again
			continue
		}
		for _, f := range settings.Fields(section.Type.Elem()) {
			switch {
			case f.Identity:
			case f.Word == "notify":
				for _, n := range settings.Fields(f.Type) {
					fields = append(fields, section.Word+" notify."+n.Word)
				}
			default:
				fields = append(fields, section.Word+" "+f.Word)
			}
		}
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		other := kinds[0]
		other.Name = "other"
		g.env.Kinds = append(slices.Clone(kinds), other)
		g.exec("DELETE FROM orders")
		g.exec("DELETE FROM approval_rules")
		g.apply(everything)
		g.order()
		for _, field := range fields {
			section, path, _ := strings.Cut(field, " ")
			c, ok := changesOf[field]
			head, rest, _ := strings.Cut(everything, "\n"+section+":")
			if !ok {
				c, ok = notifyChanges[strings.TrimPrefix(path, "notify.")]
				indent := map[bool]string{true: "      ", false: "    "}[section == "merchants"]
				c[1] = strings.ReplaceAll(c[1], "NL", "\n"+indent)
			}
			if !ok {
				t.Errorf("%s: no change of it is tried", field)
				continue
			}
			name, _, _ := strings.Cut(path, ".")
			version := version(t, d)
			file := head + "\n" + section + ":" + strings.Replace(rest, c[0], c[1], 1)
			lines := g.apply(file)
			if file == everything {
				t.Fatalf("%s: the file is the same", field)
			}
			var printed []string
			for _, line := range lines {
				if !strings.HasSuffix(line, " unchanged") {
					printed = append(printed, line)
				}
			}
			object := map[string]string{
				"suppliers": "supplier wx-main", "merchants": "merchant m1", "subscriptions": "subscription crm",
				"payout_accounts": "payout_account m1 main", "roles": "role night", "approval": "approval",
			}[section]
			if slices.Contains(waits, field) {
				g.want(printed, object+" "+name+" proposed apr_")
				if g.version() != version {
					t.Errorf("%s: the settings changed", field)
				}
				g.want(g.notUnchanged(g.apply(file)), object+" "+name+" proposed apr_")
				g.exec("DELETE FROM approvals")
				g.exec("DELETE FROM setting_changes")
				continue
			}
			wantLines(t, printed, object+" changed: "+path)
			g.none("approvals")
			g.apply(everything)
		}
	})
}

func (g *guarded) version() int64 { return version(g.T, g.env.DB) }

func (g *guarded) notUnchanged(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, " unchanged") })
}
