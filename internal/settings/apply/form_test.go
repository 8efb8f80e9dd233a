package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

// formFile has a value in most fields of each section.
const formFile = `
suppliers:
  - code: quick
    kind: sortedparams
    allow_ips: [203.0.113.7, 101.226.103.0/25]
    fees: { rate: 0.6%, min: 1, refund: return }
    config: { format: form, algorithm: md5, key: top-secret-key, key_append: '&key={key}', order_field: out_trade_no, skip_empty: true,
      trade_field: trade_no, amount_field: money, currency: CNY, status_field: trade_status, paid_values: [TRADE_SUCCESS, "7"],
      reply: { success: OK } }
merchants:
  - code: m1
    name: "12"
    api_key: ` + keyM1 + `
    signing_secrets: [` + secretA + `, ` + secretB + `]
    notify:
      urls: [https://a.example/notify, https://b.example/notify]
      schedule: [1s, 2s]
      breaker: { failures: 3, open: 60s }
      endpoints: [{ name: backup, url: https://c.example/, headers: { X-A: header-of-a } }]
      rate_limit: 5/s
    fees: [{ rate: 1.2%, fixed: 10 }]
    limits: [{ currency: CNY, refund_auto: 100 }]
    payout_ips: [10.0.0.0/8]
subscriptions:
  - { code: s1, signing_secret: ` + secretB + `, merchants: [m1], urls: [https://s.example/n], events: [order.paid] }
skus: [{ sku: SKU-1, stock: 7 }]
payout_accounts: [{ merchant: m1, code: main, kind: bank_card, holder: Galaxy, number: "6222000011114711", bank: ICBC }]
approval: { typed_above: [{ currency: CNY, amount: 7 }] }
`

func formEnv(t *testing.T, d *db.DB) Env {
	t.Helper()
	env, out := newEnv(t, d)
	env.Kinds = supplier.Kinds{sortedparams.Kind}
	mustApply(t, env, out, formFile)
	return env
}

var everyObject = map[string]string{
	"suppliers": "quick", "merchants": "m1", "subscriptions": "s1", "skus": "SKU-1", "payout_accounts": "m1:main", "approval": "",
}

func entryOf(t *testing.T, env Env, word, code string) (*Entry, []FormField) {
	t.Helper()
	s, _ := SectionOf(word)
	e, err := ReadEntry(t.Context(), env, s, code)
	if err != nil {
		t.Fatal(err)
	}
	return e, s.Form(e, "", env.Kinds)
}

// fillIn previews what was typed into the form.
func fillIn(t *testing.T, env Env, word, code string, typed Typed) (*Plan, error) {
	t.Helper()
	e, form := entryOf(t, env, word, code)
	edit, err := e.Edit(form, typed)
	if err != nil {
		return nil, err
	}
	return Preview(t.Context(), env, edit)
}

func TestAFormThatIsSentAsItIsChangesNothing(t *testing.T) {
	t.Parallel()
	env := formEnv(t, dbtest.SQLite(t))
	for word, code := range everyObject {
		_, form := entryOf(t, env, word, code)
		typed := Typed{}
		for _, f := range form {
			if f.Input != Password && f.Input != Signing {
				typed[f.Path] = f.Value
			}
			for _, secret := range []string{"top-secret-key", keyM1, secretA, "6222000011114711", "header-of-a"} {
				if strings.Contains(fmt.Sprint(f), secret) {
					t.Errorf("a secret is in %+v", f)
				}
			}
		}
		if p, err := fillIn(t, env, word, code, typed); err != nil || p.What != settings.Unchanged {
			t.Errorf("%s: %+v, %v", word, p, err)
		}
	}
}

func TestWhatIsTypedIsChanged(t *testing.T) {
	t.Parallel()
	env := formEnv(t, dbtest.SQLite(t))
	for _, c := range []struct {
		word  string
		typed Typed
		want  []string
	}{
		{"suppliers", Typed{"config.key": "another-key", "config.reply.success": "YES"}, []string{"config.key: set → changed", "config.reply.success: OK → YES"}},
		{"suppliers", Typed{"config.trade_field": "", "enabled": "false"}, []string{"enabled: true → false", "config.trade_field: trade_no → none"}},
		{"suppliers", Typed{"enabled": "false"}, []string{"enabled: true → false"}},
		{"suppliers", Typed{"config.skip_empty": "false", "allow_ips": ""}, []string{
			"allow_ips: [203.0.113.7/32, 101.226.103.0/25] → []", "config.skip_empty: true → false",
		}},
		{"suppliers", Typed{"config.paid_values": " TRADE_SUCCESS\n\nDONE \n"}, []string{`config.paid_values: ["TRADE_SUCCESS","7"] → ["TRADE_SUCCESS","DONE"]`}},
		{"merchants", Typed{"notify.schedule": "quick", "name": "007"}, []string{"name: 12 → 007", "notify.schedule: [1s, 2s] → quick"}},
		{"merchants", Typed{"notify.rate_limit": "", "notify.max_in_flight": "9"}, []string{"notify.max_in_flight: 10 → 9", "notify.rate_limit: 5/s → none"}},
		{"merchants", Typed{"fees": "- { rate: 1.3%, fixed: 10 }"}, []string{
			"fees: [{supplier: *, rate: 1.2%, fixed: 10, min: 0, max: 0, refund: keep}] → [{supplier: *, rate: 1.3%, fixed: 10, min: 0, max: 0, refund: keep}]",
		}},
		{"merchants", Typed{"signing_secret": secretC, Overlap: OverlapKeep}, []string{"signing_secret: set → changed, the old one stays valid"}},
		{"merchants", Typed{Overlap: OverlapEnd}, []string{"signing_secret: set → the old one ends"}},
		{"merchants", Typed{"signing_secret": secretC, Overlap: OverlapEnd}, []string{"signing_secret: set → changed, the old one ends at once"}},
		{"merchants", Typed{Overlap: OverlapKeep, "api_key": ""}, nil},
		{"subscriptions", Typed{"merchants": "all"}, []string{"merchants: [m1] → all"}},
		{"payout_accounts", Typed{"number": "6222000011110815"}, []string{"number: •••• 4711 → •••• 0815"}},
		{"approval", Typed{"apply": "true"}, []string{"apply: false → true"}},
	} {
		p, err := fillIn(t, env, c.word, everyObject[c.word], c.typed)
		if err != nil {
			t.Errorf("%v: %v", c.typed, err)
			continue
		}
		var got []string
		for _, d := range p.Differences {
			got = append(got, d.Field+": "+d.Old+" → "+d.New)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v:\n%q\nwant\n%q", c.typed, got, c.want)
		}
	}
}

const secretC = "whsec_Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M="

func TestAProblemIsAtItsInput(t *testing.T) {
	t.Parallel()
	env := formEnv(t, dbtest.SQLite(t))
	for _, c := range []struct {
		word  string
		typed Typed
		field string
	}{
		{"suppliers", Typed{"config.order_field": ""}, "config.order_field"},
		{"merchants", Typed{"notify.urls": "https://a.example\nhttp://b.example"}, "notify.urls[1]"},
		{"merchants", Typed{"fees": "- { rate: x"}, "fees"},
		{"merchants", Typed{"fees": "- { rate: 1.2 }"}, "fees[0].rate"},
		{"merchants", Typed{"signing_secret": "whsec_x"}, "signing_secret"},
		{"merchants", Typed{"refund_window": "1"}, "refund_window"},
	} {
		_, err := fillIn(t, env, c.word, everyObject[c.word], c.typed)
		if invalid, ok := err.(*Invalid); !ok || invalid.Fields[0].Field != c.field {
			t.Errorf("%v: %v", c.typed, err)
		}
	}
}

func TestEveryInputIsNamedInBothLanguages(t *testing.T) {
	t.Parallel()
	env := formEnv(t, dbtest.SQLite(t))
	for word, code := range everyObject {
		_, form := entryOf(t, env, word, code)
		for _, f := range form {
			if f.Label.EN == "" || f.Label.ZH == "" || f.Help.EN == "" || f.Help.ZH == "" {
				t.Errorf("%s %s: %+v %+v", word, f.Path, f.Label, f.Help)
			}
		}
	}
	if s := Sections[0]; s.Label.ZH == "" || s.Help.ZH == "" {
		t.Errorf("%+v", s)
	}
}

func TestADraftIsTheOperatorsOwnAndSealed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env := formEnv(t, d)
		drafts := Drafts{env}
		for _, name := range []string{"first", "second"} {
			if err := drafts.Save(t.Context(), 1, Draft{Object: merchantM1(), Typed: Typed{"name": name, "api_key": keyM2}, Version: 3}); err != nil {
				t.Fatal(err)
			}
		}
		is, err := drafts.Of(t.Context(), 1, merchantM1())
		if err != nil || is == nil || is.Typed["name"] != "second" || is.Typed["api_key"] != keyM2 || is.Version != 3 || is.At == 0 {
			t.Fatalf("%+v, %v", is, err)
		}
		if n := count(t, d, "SELECT count(*) FROM setting_drafts WHERE sealed LIKE '%second%' OR sealed LIKE ?", "%"+keyM2+"%"); n != 0 {
			t.Error("it is stored as it is")
		}
		if other, err := drafts.Of(t.Context(), 2, merchantM1()); err != nil || other != nil {
			t.Errorf("another operator has %+v, %v", other, err)
		}
		if _, err := d.NewRaw("INSERT INTO setting_drafts (operator_id, object, sealed, version, at) VALUES (2, 'merchant m1', '', 1, 0)").
			Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := drafts.Save(t.Context(), 1, *is); err != nil || count(t, d, "SELECT count(*) FROM setting_drafts WHERE operator_id = 2") != 0 {
			t.Errorf("an old draft is kept: %v", err)
		}
		if err := drafts.Discard(t.Context(), 1, merchantM1()); err != nil {
			t.Fatal(err)
		}
		if all, err := drafts.All(t.Context(), 1); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Fields of differences are named as in forms, those within another by that one.
func TestAFieldOfADifferenceHasTheNameOfItsForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, path, kind, want string }{
		{"merchants", "notify.timeout", "", "Timeout"},
		{"merchants", "limits.CNY.payout_each", "", "Limits"},
		{"merchants", "signing_secrets", "", "Signing secret"},
		{"merchants", "api_key", "", "API key"},
		{"merchants", "address x", "", ""},
		{"suppliers", "enabled", "", "Enabled"},
		{"suppliers", "kind", "", "Kind"},
		{"suppliers", "config.key", "sortedparams", "Key"},
		{"suppliers", "config.key", "", "Protocol settings"},
	} {
		s, _ := SectionOf(c.word)
		if got := s.FieldLabel(c.path, c.kind, supplier.Kinds{sortedparams.Kind}).EN; got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.path, c.word, got, c.want)
		}
	}
}
