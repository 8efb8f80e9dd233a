package apply

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func TestAnApprovedChangeIsExactlyTheEntry(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		// Other fields are changed at once; waiting fields are not changed.
		changed := strings.NewReplacer("Galaxy Mall", "Galaxy Hall", "https://a.example/notify",
			"'https://b.example/notify?token=hidden-token'", keyM1, keyM2, "timeout: 5s", "timeout: 6s",
			"key: top-secret", "key: canary-of-the-supplier").Replace(whole)
		g.want(g.apply(changed), "merchant m1 changed: name, notify.timeout", "sku SKU-1 unchanged", "account m1 CNY unchanged",
			"supplier wx-main config proposed apr_", "merchant m1 api_key proposed apr_", "merchant m1 notify proposed apr_")
		m := load(t, g.env).ByCode("m1")
		if m.Settings.URLs[0] != "https://a.example/notify" || m.Settings.TimeoutMS != 6000 ||
			load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) != nil {
			t.Errorf("before it is approved: %+v", m.Settings)
		}
		a := g.last()
		if a.ObjectID != "merchant m1" || a.MerchantID != m.ID || a.Maker != g.people["ada"].ID ||
			!strings.Contains(string(a.Params), `"field":"notify.urls"`) || !strings.Contains(string(a.Params), `"new":"digest `) {
			t.Errorf("%+v %s", a, a.Params)
		}
		g.canary(keyM2, "canary-of-the-supplier", "hidden-token")
		g.mustApprove(a)
		m = load(t, g.env).ByKeyHash(seal.HashToken(keyM2))
		if m == nil || m.Settings.URLs[0] != "https://b.example/notify?token=hidden-token" || m.Settings.TimeoutMS != 6000 {
			t.Errorf("merchant %+v", m)
		}
		if f := g.fake(); f.Key != "top-secret" {
			t.Errorf("the supplier's key is %q: that was not approved yet", f.Key)
		}
		g.want(g.notUnchanged(g.apply(changed)), "supplier wx-main config proposed apr_")
		all, err := approval.List(t.Context(), d, approval.Query{State: approval.Waiting, Limit: 9})
		if err != nil || len(all) != 1 {
			t.Fatalf("%d wait, %v", len(all), err)
		}
		g.mustApprove(all[0])
		if f := g.fake(); f.Key != "canary-of-the-supplier" || !slices.Equal(f.Certs, []string{"c-1", "c-2"}) || f.Tries != 3 {
			t.Errorf("config %+v", f)
		}
		g.none("setting_changes")
		g.canary(keyM2, "canary-of-the-supplier")
		if lines := g.notUnchanged(g.apply(changed)); len(lines) != 0 {
			t.Errorf("after all that: %q", lines)
		}
		// The audit has the decision and its effect.
		rows, err := audit.List(t.Context(), d, audit.Query{Limit: 99})
		if err != nil || !slices.ContainsFunc(rows, func(r audit.Row) bool {
			return r.Action == "settings.change" && r.ObjectID == "merchant m1" && r.Actor == checker &&
				strings.Contains(r.Params, a.No()) && strings.Contains(r.Params, "api_key")
		}) {
			t.Errorf("no row of the change in %+v, %v", rows, err)
		}
	})
}

func (g *guarded) fake() fakeConfig {
	g.Helper()
	store := settings.NewStore(g.env.DB, g.env.Kinds, g.env.Keys, slog.New(slog.DiscardHandler))
	if err := store.Refresh(g.Context()); err != nil {
		g.Fatal(err)
	}
	s, ok := store.Current().Suppliers.Lookup("wx-main")
	if !ok {
		g.Fatal("there is no supplier")
	}
	return s.Adapter.(*fake).config
}

// canary looks for secrets in the whole database and in the output.
func (g *guarded) canary(secrets ...string) {
	g.Helper()
	var texts strings.Builder
	texts.WriteString(g.out.String())
	for _, query := range []string{
		"SELECT params || reason || evidence || result || error FROM approvals", "SELECT sealed FROM setting_changes",
		"SELECT params FROM audit",
		"SELECT CAST(config AS TEXT) FROM suppliers", "SELECT CAST(signing_secrets AS TEXT) || COALESCE(api_key_hash, '') FROM merchants",
	} {
		var all []string
		if err := g.env.DB.NewRaw(query).Scan(g.Context(), &all); err != nil {
			g.Fatal(err)
		}
		if len(all) == 0 && !strings.Contains(query, "setting_changes") {
			g.Errorf("%s: no rows were checked", query)
		}
		texts.WriteString(strings.Join(all, "\n"))
	}
	for _, s := range secrets {
		if strings.Contains(texts.String(), s) {
			g.Errorf("%s is to be read in\n%s", s, texts.String())
		}
	}
}

func TestAChangeOfWhatHasChangedMeanwhileIsNotMade(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		a := g.last()
		g.apply(strings.Replace(whole, "timeout: 5s", "timeout: 7s", 1))
		before := g.version()
		if _, err := g.approve(a, "lu"); !errors.Is(err, act.ErrChanged) {
			t.Errorf("err = %v", err)
		}
		if g.version() != before || load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) != nil {
			t.Error("it was changed all the same")
		}
		// After a rejection the values are deleted; the same file then makes a new proposal.
		if _, err := g.desk().Reject(t.Context(), approval.Verdict{
			ID: a.ID, Reason: "out of date by now",
			By: g.people["lu"],
		}); err != nil {
			t.Fatal(err)
		}
		g.none("setting_changes")
		g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		b := g.last()
		if b.ID == a.ID {
			t.Fatal("no new proposal")
		}
		g.mustApprove(b)
	})
}

// A command without an operator's token proposes as the command, and any operator who may approve settings can approve it.
func TestACommandProposesAndAnOperatorApproves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.env.Token = ""
		said := g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		a := g.last()
		if want := "merchant m1 api_key proposed " + a.No(); !slices.Contains(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		if m, err := approval.MakerOf(t.Context(), d.Read, approval.ByCommand); err != nil || m.ID != a.Maker {
			t.Errorf("the command is %+v, %v", m, err)
		}
		if a.Maker != 0 || a.State != approval.Waiting || load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) != nil {
			t.Errorf("%+v", a)
		}
		if n := count(t, d, "SELECT count(*) FROM audit WHERE actor = ? AND action = 'approval.propose'", audit.Command()); n != 1 {
			t.Errorf("%d rows of the audit name the command", n)
		}
		if _, err := g.approve(a, "ada"); err == nil { // an admin proposes settings, and approves none
			t.Error("an admin approved it")
		}
		g.mustApprove(a)
		if load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) == nil {
			t.Error("it was not changed")
		}
	})
}

func TestOneProposalOfAnEntryIsOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		first := g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		if again := g.apply(strings.Replace(whole, keyM1, keyM2, 1)); !slices.Equal(first, again) {
			t.Errorf("the same file again\n%q\n%q", first, again)
		}
		err := Apply(t.Context(), g.env, asFile(strings.Replace(whole, secretA, secretB, 1)))
		if !errors.Is(err, approval.ErrProposed) || !strings.Contains(err.Error(), g.last().No()) {
			t.Errorf("another change: %v", err)
		}
		if n := count(t, d, "SELECT count(*) FROM approvals"); n != 1 {
			t.Errorf("%d proposals", n)
		}
	})
}

func TestAnOperatorProposesAndAnotherOneApproves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		changed := asFile(strings.Replace(whole, keyM1, keyM2, 1))
		ada := g.env.Token
		for what, token := range map[string]string{"with another one": "bso_" + strings.Repeat("0", 52), "with no token": "ada"} {
			g.env.Token = token
			if err := Apply(t.Context(), g.env, changed); !errors.Is(err, approval.ErrPerson) ||
				!strings.Contains(err.Error(), "BACKSTOP_OPERATOR_TOKEN") {
				t.Errorf("%s: err = %v", what, err)
			}
		}
		g.env.Token = g.token("lu")
		var denied *act.Denied
		if err := Apply(t.Context(), g.env, changed); !errors.As(err, &denied) ||
			!strings.Contains(err.Error(), "an operator of role admin") {
			t.Errorf("err = %v", err)
		}
		g.none("approvals")
		g.env.Token = ada
		g.exec("UPDATE operators SET disabled_at = 1 WHERE name = 'ada'")
		if err := Apply(t.Context(), g.env, changed); !errors.Is(err, approval.ErrPerson) {
			t.Errorf("disabled: err = %v", err)
		}
		g.exec("UPDATE operators SET disabled_at = NULL WHERE name = 'ada'")
		g.apply(string(changed.Text))
		a := g.last()
		if a.Maker != g.people["ada"].ID {
			t.Errorf("maker %d", a.Maker)
		}
		if _, err := g.approve(a, "ada"); !errors.Is(err, approval.ErrSelfApproval) {
			t.Errorf("err = %v", err)
		}
		g.mustApprove(a)

		// What waits is taken back by who proposed it.
		g.apply(strings.Replace(whole, keyM1, keyM2, 1)) // nothing differs by now
		g.apply(whole)
		a = g.last()
		no := approval.Verdict{ID: a.ID, Reason: "it was the wrong file", By: g.people["lu"]}
		if _, err := g.desk().Withdraw(t.Context(), no); !errors.Is(err, approval.ErrMaker) {
			t.Errorf("reverted by another one: %v", err)
		}
		no.By = g.people["ada"]
		if a, err := g.desk().Withdraw(t.Context(), no); err != nil || a.State != approval.Withdrawn {
			t.Errorf("%+v, %v", a, err)
		}
		g.none("setting_changes")
	})
}

// A file of which something waits is not applied by halves for want of a token that works.
func TestWithAWrongTokenNothingOfTheFileIsApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.env.Token = "bso_" + strings.Repeat("0", 52)
		err := Apply(t.Context(), g.env, asFile(strings.NewReplacer(keyM1, keyM2, "Galaxy Mall", "Galaxy Hall").Replace(whole)))
		if !errors.Is(err, approval.ErrPerson) || count(t, d, "SELECT count(*) FROM merchants WHERE name = 'Galaxy Hall'") != 0 {
			t.Errorf("err = %v", err)
		}
		g.apply(strings.Replace(whole, "Galaxy Mall", "Galaxy Hall", 1)) // of which nothing waits
		if count(t, d, "SELECT count(*) FROM merchants WHERE name = 'Galaxy Hall'") != 1 {
			t.Error("what does not wait needs a token")
		}
	})
}

func TestWithoutASecondPersonNothingIsProposed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.exec("UPDATE operators SET disabled_at = 1 WHERE role = 'lead'")
		err := Apply(t.Context(), g.env, asFile(strings.NewReplacer(keyM1, keyM2, "Galaxy Mall", "Galaxy Hall").Replace(whole)))
		if !errors.Is(err, approval.ErrNoSecond) || !strings.Contains(err.Error(), "merchant m1: api_key") ||
			!strings.Contains(err.Error(), "backstop operator add") {
			t.Errorf("err = %v", err)
		}
		g.none("approvals")
		g.none("setting_changes")
	})
}

// A one-person installation changes its settings at once, and that is marked.
func TestOnePersonDecidesAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.want(g.apply("approval: { second_person: false }"), "approval second_person proposed apr_")
		g.mustApprove(g.last())
		g.exec("UPDATE operators SET disabled_at = 1 WHERE role = 'lead'")
		lines := g.notUnchanged(g.apply(strings.Replace(whole, keyM1, keyM2, 1)))
		a := g.last()
		wantLines(t, lines, "merchant m1 api_key changed by "+a.No()+", decided alone")
		if !a.SinglePerson || a.State != approval.Done || load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) == nil {
			t.Errorf("%+v", a)
		}
		g.none("setting_changes")
	})
}

// Only two people can switch off the rules, even before there is an order.
func TestTheRulesAreSwitchedOffByTwoPeople(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.exec("DELETE FROM orders")
		g.want(g.notUnchanged(g.apply(strings.Replace(whole, keyM1, keyM2, 1))), "merchant m1 changed: api_key")
		g.want(g.apply("approval: { apply: false }"), "approval apply proposed apr_")
		if !rulesOf(t, g.env).Apply {
			t.Fatal("it is off")
		}
		g.mustApprove(g.last())
		if rulesOf(t, g.env).Apply {
			t.Error("it is on")
		}
		g.want(g.apply(approvalOn), "approval changed: apply")
	})
}

func TestNewEntriesDoNotWait(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, dbtest.SQLite(t))
	g.want(g.apply("merchants: [{ code: m9, signing_secret: "+secretB+", notify: { urls: [https://n.example] } }]"), "merchant m9 created")
	// A key that another merchant still has waits or is refused, but never waits forever.
	err := Apply(t.Context(), g.env, asFile(strings.Replace(whole, keyM1, keyM2, 1)+"subscriptions: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = Apply(t.Context(), g.env, asFile("merchants:\n- { code: m1, api_key: "+keyM2+" }\n- { code: m8, signing_secret: "+secretB+
		", api_key: "+keyM1+" }"))
	var wrong *Invalid
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "merchants[1].api_key: this is the API key of merchant m1") {
		t.Errorf("err = %v", err)
	}
}

func TestADryRunShowsWhatWaits(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, dbtest.SQLite(t))
	if !differs(t, g.env, g.out, asFile(strings.NewReplacer(keyM1, keyM2, "Galaxy Mall", "Galaxy Hall").Replace(whole))) {
		t.Error("nothing differs")
	}
	for _, want := range []string{
		"merchant m1 changed\n", "  name: Galaxy Mall → Galaxy Hall\n",
		"  api_key: set → changed (waits for a second person)\n",
	} {
		if !strings.Contains(g.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, g.out)
		}
	}
	g.none("approvals")
}

// A disabled address that is declared again is enabled with its new URL, not with the old one.
func TestAnAddressIsEnabledWithItsChange(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.apply("merchants: [{ code: m9, signing_secret: " + secretB + ", notify: { endpoints: [{ name: e, url: https://e.example }] } }]")
		g.exec("INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, disabled_at, reason) VALUES (?, 'e', 4, '', 1, 'answered 410')", load(t, g.env).ByCode("m9").ID)
		g.want(g.apply("merchants: [{ code: m9, notify: { endpoints: [{ name: e, url: https://f.example }] } }]"),
			"merchant m9 notify proposed apr_")
		if !load(t, g.env).ByCode("m9").Endpoints[0].Disabled {
			t.Fatal("it is enabled with its old URL")
		}
		g.mustApprove(g.last())
		if e := load(t, g.env).ByCode("m9").Endpoints[0]; e.Disabled || e.URL != "https://f.example" {
			t.Errorf("endpoint %+v", e)
		}
	})
}

// Secrets that do not open on this node stay as stored while other fields change.
func TestSecretsThatDoNotOpenStay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		old := g.env.Keys
		g.exec("DELETE FROM master_key")
		g.env.Keys = keyring(t, 2)
		g.env.Token = g.token("ada")
		g.want(g.notUnchanged(g.apply(strings.Replace(whole, "kind: fake", "kind: fake\n    query_rate: 3/s", 1))),
			"supplier wx-main changed: query_rate", "supplier wx-main config proposed apr_", "merchant m1 signing_secret proposed apr_")
		g.env.Keys = old
		if f := g.fake(); f.Key != "top-secret" || !slices.Equal(f.Certs, []string{"c-1", "c-2"}) {
			t.Errorf("config %+v", f)
		}
	})
}

func TestWhatWaitsIsResealed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		g.env.Keys = keyring(t, 2, 1)
		if n, err := Reseal(t.Context(), g.env, nil); err != nil || n != 3 {
			t.Fatalf("resealed %d, %v", n, err)
		}
		g.env.Keys = keyring(t, 2)
		if ids, err := settings.SealedUnder(t.Context(), d); err != nil || !slices.Equal(ids, g.env.Keys.IDs()) {
			t.Errorf("sealed under %v, %v", ids, err)
		}
		g.mustApprove(g.last())
		if load(t, g.env).ByKeyHash(seal.HashToken(keyM2)) == nil {
			t.Error("the key did not arrive")
		}
	})
}

// Values that were moved to another approval do not open, and nothing is changed.
func TestValuesBelongToTheirApproval(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.apply("merchants: [{ code: m9, api_key: sk_live_9999999999999999, signing_secret: " + secretB + " }]")
		g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		a := g.last()
		g.apply("merchants: [{ code: m9, api_key: sk_live_8888888888888888 }]")
		b := g.last()
		g.exec("UPDATE setting_changes SET sealed = (SELECT sealed FROM setting_changes WHERE id = ?) WHERE id = ?", b.ID, a.ID)
		before := g.version()
		is, err := g.approve(a, "lu")
		if err != nil || is.State != approval.Failed || !strings.Contains(is.Error, "open the new values") || g.version() != before {
			t.Errorf("%+v, %v", is, err)
		}
		// It cannot be run again: its values were deleted.
		if _, err := g.desk().Retry(t.Context(), approval.Verdict{
			ID: a.ID, Hash: a.Hash, Reason: "once more, please",
			By: g.people["mo"],
		}); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("again: %v", err)
		}
	})
}

// Two people approve the same change while a file is applied: it is made once.
func TestAChangeIsMadeOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.apply(strings.Replace(whole, keyM1, keyM2, 1))
		a, desk, before := g.last(), g.desk(), g.version()
		end := make(chan error, 2)
		for _, by := range []string{"lu", "mo"} {
			go func() {
				_, err := desk.Approve(context.WithoutCancel(t.Context()), approval.Verdict{
					ID: a.ID, Hash: a.Hash,
					Reason: "as it was agreed", By: g.people[by],
				})
				end <- err
			}()
		}
		first, second := <-end, <-end
		if (first == nil) == (second == nil) || g.version() != before+1 {
			t.Errorf("%v, %v; %d changes", first, second, g.version()-before)
		}
	})
}

// Whatever two files declare, after the approval the waiting fields are as the second declares.
func TestAnyChangeThatWaitsIsMadeAsItWasDeclared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		g.env.Channels = map[string]func(string) error{"email": func(string) error { return nil }}
		files := rapid.Custom(anyFile)
		for seed := range 6 {
			for _, table := range []string{
				"subscriptions", "merchants", "suppliers", "skus", "transfers", "approval_rules", "approvals",
				"setting_changes", "payout_accounts",
			} {
				g.exec("DELETE FROM " + table)
			}
			for i := range 2 {
				raw := files.Example(2*seed + i)
				raw["approval"].(map[string]any)["apply"] = true
				raw["approval"].(map[string]any)["second_person"] = true
				file, err := yaml.Marshal(raw)
				if err != nil {
					t.Fatal(err)
				}
				f := File{Name: "any.yaml", Dir: ".", Text: file}
				if err := Apply(t.Context(), g.env, f); err != nil {
					t.Fatalf("file %d: %v\n%s", i, err, file)
				}
				all, err := approval.List(t.Context(), d, approval.Query{State: approval.Waiting, Limit: 9})
				if err != nil || (i == 0) != (len(all) == 0) {
					t.Fatalf("file %d: %d wait, %v", i, len(all), err)
				}
				for _, a := range all {
					if is, err := g.approve(a, "lu"); err != nil || is.State != approval.Done {
						t.Fatalf("%s: %+v, %v\n%s", a.ObjectID, is, err, file)
					}
				}
				if differs(t, g.env, g.out, f) {
					t.Fatalf("file %d differs: %s\n%s", i, g.out, file)
				}
			}
		}
	})
}
