package apply

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

const editReason = "as agreed with the merchant"

// edit makes an edit as an operator.
func edit(t *testing.T, env Env, by act.Actor, e Edit) (*Plan, error) {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	acts := act.New(env.DB, audit.New(env.DB, env.Keys), policy, EditActs(env)...)
	params, _ := json.Marshal(editParams{Entry: e.Entry, Version: e.Version})
	out, err := acts.Run(t.Context(), act.Call{Kind: EditAct, By: by, Ref: act.Ref{ID: e.Object.String()}, Params: params, Reason: editReason})
	if err != nil {
		return nil, err
	}
	done, err := out.After(t.Context())
	if err != nil {
		return nil, err
	}
	return done.(*Plan), nil
}

var admin = act.Actor{Name: "operator:ada", ID: 3, Roles: access.RolesOf(access.Admin)}

func merchantM1() settings.Object { return settings.Object{Kind: "merchant", ID: "m1"} }

func TestAnEditDoesWhatAFileDoes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		before := version(t, d)
		entry := "name: Galaxy Hall\nnotify: { timeout: 3s }\n"
		preview, err := Preview(t.Context(), env, Edit{Object: merchantM1(), Entry: entry})
		want := []Difference{{"name", "Galaxy Mall", "Galaxy Hall", false}, {"notify.timeout", "5s", "3s", false}}
		if err != nil || !slices.Equal(preview.Differences, want) || version(t, d) != before {
			t.Fatalf("%+v, %v", preview, err)
		}
		done, err := edit(t, env, admin, Edit{Object: merchantM1(), Entry: entry, Version: before})
		if err != nil || !slices.Equal(done.Lines, []string{"merchant m1 changed: name, notify.timeout"}) {
			t.Fatalf("%+v, %v", done, err)
		}
		if _, err := edit(t, env, admin, Edit{Object: merchantM1(), Entry: "name: Late", Version: before}); !errors.Is(err, act.ErrChanged) {
			t.Errorf("an outdated edit: %v", err)
		}
		rows, err := settings.History(t.Context(), d, merchantM1(), before, 9)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%+v, %v", rows, err)
		}
		r := rows[1]
		if r.Field != "name" || r.Old != "Galaxy Mall" || r.New != "Galaxy Hall" || r.Reason != editReason || r.Actor != admin.Name {
			t.Errorf("%+v", r)
		}
		all, err := audit.List(t.Context(), d, audit.Query{Limit: 1})
		if err != nil || all[0].Action != EditAct || all[0].ObjectID != "merchant m1" || !strings.Contains(all[0].Params, "notify.timeout") {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// What is read can be sent back as it is: it changes nothing, and shows no secret.
func TestAnEntryThatIsSentBackChangesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		f := strings.Replace(whole, "signing_secret: "+secretA, "signing_secrets: ["+secretB+", "+secretA+"]", 1)
		mustApply(t, env, out, f+"approval: { second_person: false }\n")
		for word, code := range map[string]string{"suppliers": "wx-main", "merchants": "m1", "skus": "SKU-1", "approval": ""} {
			s, _ := SectionOf(word)
			e, err := ReadEntry(t.Context(), env, s, code)
			if err != nil || !e.Stored {
				t.Fatalf("%s: %+v, %v", word, e, err)
			}
			text, err := e.JSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"top-secret", "c-1", keyM1, secretA, secretB} {
				if strings.Contains(string(text), secret) {
					t.Errorf("a secret is in %s", text)
				}
			}
			p, err := Preview(t.Context(), env, Edit{Object: e.Object, Entry: string(text)})
			if err != nil || p.What != settings.Unchanged {
				t.Errorf("%s: %+v, %v", text, p, err)
			}
		}
	})
}

func TestASecretIsRotatedWithOverlap(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		p, err := edit(t, env, admin, Edit{Object: merchantM1(), Entry: "signing_secrets: [" + secretB + ", stored:signing_secret]"})
		if err != nil || len(p.Differences) != 1 || strings.Contains(p.Differences[0].New, "whsec") {
			t.Fatalf("%+v, %v", p, err)
		}
		if differs(t, env, out, asFile("merchants: [{ code: m1, signing_secrets: ["+secretB+", "+secretA+"], api_key: "+keyM1+" }]")) {
			t.Errorf("stored is something else: %s", out)
		}
	})
}

func TestAnEditReadsNoFilesAndNamesTheField(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	mustApply(t, env, out, whole)
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secretB), 0o600); err != nil {
		t.Fatal(err)
	}
	for entry, field := range map[string]string{
		"signing_secret: file:" + path:               "signing_secret",
		"api_key: stored:payout_key":                 "api_key",
		"notify: { urls: [http://a.example] }":       "notify.urls[0]",
		"notify: { timeout: 1m }":                    "notify.timeout",
		"code: m2":                                   "code",
		"colour: red":                                "colour",
		"a: [":                                       "",
		"name: &a x\nnotify: { ack_text: *a }":       "notify.ack_text",
		"fees: [{ supplier: unknown, rate: 1.2% }]":  "fees[0].supplier",
		"notify: { endpoints: [{ name: backup }]}":   "notify.endpoints[0].url",
		"payout_ips: [10.0.0.1/8]":                   "payout_ips[0]",
		"signing_secrets: [stored:signing_secret, x": "",
	} {
		_, err := Preview(t.Context(), env, Edit{Object: merchantM1(), Entry: entry})
		var invalid *Invalid
		if !errors.As(err, &invalid) || invalid.Fields[0].Field != field {
			t.Errorf("%s: %v %+v", entry, err, invalid)
		}
	}
}

func TestAnEditProposesWhatNeedsASecondPerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		fees := Edit{Object: merchantM1(), Entry: "name: Galaxy Hall\nfees: [{ rate: 1.2% }]\n"}
		p, err := edit(t, g.env, g.people["ada"], fees)
		if err != nil || len(p.Approvals) != 1 || !p.Differences[1].Waits || p.Differences[0].Waits {
			t.Fatalf("%+v, %v", p, err)
		}
		g.want(p.Lines, "merchant m1 changed: name", "merchant m1 fees proposed apr_")
		again, err := edit(t, g.env, g.people["ada"], fees)
		if err != nil || !slices.Equal(again.Approvals, p.Approvals) {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		_, err = edit(t, g.env, g.people["ada"], Edit{Object: merchantM1(), Entry: "fees: [{ rate: 1.3% }]"})
		if !errors.Is(err, approval.ErrProposed) {
			t.Errorf("another change of it: %v", err)
		}
		if _, err := g.approve(g.last(), "ada"); err == nil {
			t.Error("who proposed it has approved it")
		}
		g.mustApprove(g.last())
		rows, err := settings.History(t.Context(), d, merchantM1(), 0, 1)
		if err != nil || rows[0].Field != "fees" || rows[0].Approval != p.Approvals[0] || rows[0].Actor != checker {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

func TestNewObjectsAreMade(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		for id, entry := range map[string]string{
			"merchant m2":            "signing_secret: " + secretB + "\napi_key: " + keyM2 + "\nnotify: { urls: [https://m2.example/n] }",
			"supplier two":           "kind: fake\nconfig: { mch_id: '2', key: k-2 }",
			"sku SKU-2":              "stock: 7",
			"payout_account m1 main": "kind: bank_card\nholder: Galaxy\nnumber: '6222000011114711'\nbank: ICBC",
			"approval":               "typed_above: [{ currency: CNY, amount: 5 }]",
		} {
			s, o, _ := ObjectOf(id)
			p, err := edit(t, env, admin, Edit{Object: o, Entry: entry})
			if err != nil || len(p.Lines) != 1 {
				t.Fatalf("%s: %+v, %v", id, p, err)
			}
			if e, err := ReadEntry(t.Context(), env, s, s.Code(o)); err != nil || !e.Stored {
				t.Errorf("%s: %+v, %v", id, e, err)
			}
			if s.One {
				continue
			}
			if codes, err := Codes(t.Context(), env, s); err != nil || !slices.Contains(codes, s.Code(o)) {
				t.Errorf("%s: %v, %v", id, codes, err)
			}
		}
		if _, err := edit(t, env, admin, Edit{Object: settings.Object{Kind: "account", ID: "m1 CNY"}, Entry: "balance: 1"}); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("an opening balance: %v", err)
		}
	})
}
