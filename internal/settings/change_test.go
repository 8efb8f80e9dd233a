package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/notify/webhook"
	"backstop/internal/settings"
)

const (
	oldSecret = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	newSecret = "whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="
)

func changeEnv(t *testing.T, d *db.DB) settings.Env {
	t.Helper()
	return settings.Env{
		DB: d, Keys: sealtest.Ring(t, 1), Ledger: ledger.New(d), Events: notify.Types, ParseSecret: webhook.ParseSecret,
		CheckHeaders: webhook.CheckHeaders, EnableEndpoint: notify.EnableEndpoint,
		CheckURL: func(u string) error {
			if !strings.HasPrefix(u, "https://") {
				return errors.New("only https is reached")
			}
			return nil
		},
		ParseSchedule: func(text string) (settings.Schedule, error) {
			s, err := notify.ParseSchedule(text)
			return settings.Schedule{Name: text, Waits: s}, err
		},
	}
}

func readAll(t *testing.T, env settings.Env) *settings.Stored {
	t.Helper()
	s, err := settings.Read(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// commit makes changes as a console would, in a transaction with an act of its own.
func commit(t *testing.T, s *settings.Stored, d *db.DB, changes ...settings.Change) (out []settings.Outcome, err error) {
	t.Helper()
	err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		out, err = s.Commit(ctx, tx, changes, false, audit.Act{
			Actor: "operator:li", Action: "settings.change", Object: "merchant",
			ObjectID: "m1",
		})
		return err
	})
	return out, err
}

func m1() settings.Object { return settings.Object{Kind: "merchant", ID: "m1"} }

// made is a merchant with secrets of each sort.
func made(t *testing.T, env settings.Env) *settings.Merchant {
	t.Helper()
	s := readAll(t, env)
	m := s.NewMerchant("m1")
	m.APIKey = settings.NewAPIKey("sk_live_0123456789abcdef")
	m.SigningSecrets = []settings.Secret{settings.NewSecret(oldSecret)}
	m.Notify.URLs = []string{"https://a.example/in?token=not-for-eyes"}
	m.Notify.Endpoints = []settings.Endpoint{{
		Name: "b", Channel: "webhook", URL: "https://b.example/", Weight: 1, Format: "standard",
		Credentials: map[string]settings.Secret{"form_key": settings.NewSecret("credential-of-nine")},
	}}
	if _, err := commit(t, s, env.DB, settings.NewChange(m1(), nil, m)); err != nil {
		t.Fatal(err)
	}
	return readAll(t, env).Merchant("m1")
}

func TestAChangeSaysOldAndNewAndNoSecret(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env := changeEnv(t, d)
		before := made(t, env)
		after := *before
		after.Name = "Galaxy Mall"
		after.SigningSecrets = []settings.Secret{settings.NewSecret(newSecret), before.SigningSecrets[0]}
		after.Notify.URLs = []string{"https://a.example/in?token=another-one"}
		after.Notify.Timeout = 5 * time.Second
		after.Notify.Endpoints = []settings.Endpoint{before.Notify.Endpoints[0]}
		after.Notify.Endpoints[0].Weight = 7
		after.Notify.Endpoints[0].Credentials = map[string]settings.Secret{"form_key": settings.NewSecret("credential-of-ten")}
		c := settings.NewChange(m1(), before, &after)
		if problems := c.Check(env); len(problems) > 0 {
			t.Fatal(problems)
		}
		var got []string
		for _, x := range c.Diff() {
			got = append(got, x.Field+": "+x.Old+" → "+x.New)
		}
		want := []string{
			"name: m1 → Galaxy Mall", "signing_secret: set → changed, the old one stays valid",
			"notify.urls: [https://a.example/in?…] → [https://a.example/in?…] (differs where it is not shown)", "notify.timeout: 10s → 5s",
			"notify.endpoints.b.weight: 1 → 7", "notify.endpoints.b.credentials.form_key: set → changed",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		raw, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		printed := fmt.Sprintf("%v %+v %#v %s %v", after, after, after, raw, c)
		for _, secret := range []string{"sk_live", "whsec_", "credential-of"} {
			if strings.Contains(printed, secret) || strings.Contains(fmt.Sprint(got), secret) {
				t.Errorf("%s is printed", secret)
			}
		}
		out, err := commit(t, readAll(t, env), d, c)
		if err != nil || len(out) != 1 ||
			out[0].String() != "merchant m1 changed: name, signing_secret, notify.urls, notify.timeout, notify.endpoints" {
			t.Errorf("%v, %v", out, err)
		}
		if is := readAll(t, env).Merchant("m1"); len(settings.NewChange(m1(), is, &after).Diff()) > 0 || len(is.SigningSecrets) != 2 {
			t.Errorf("stored is %+v", is)
		}
	})
}

// What was read is no longer what is stored: the change must not undo the other one.
func TestAChangeOfWhatHasChangedIsStale(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env := changeEnv(t, d)
		before := made(t, env)
		mine, theirs := *before, *before
		mine.Name, theirs.Notify.Timeout = "Mine", 3*time.Second
		read := readAll(t, env)
		if _, err := commit(t, readAll(t, env), d, settings.NewChange(m1(), before, &theirs)); err != nil {
			t.Fatal(err)
		}
		if _, err := commit(t, read, d, settings.NewChange(m1(), before, &mine)); !errors.Is(err, db.ErrStale) {
			t.Errorf("err = %v, want stale", err)
		}
		if is := readAll(t, env).Merchant("m1"); is.Name != "m1" || is.Notify.Timeout != 3*time.Second {
			t.Errorf("stored is %+v", is)
		}
		if n := len(acts(t, d)); n != 2 {
			t.Errorf("%d acts, want that of making it and that of the first change", n)
		}
	})
}

func acts(t *testing.T, d *db.DB) []audit.Row {
	t.Helper()
	rows, err := audit.List(t.Context(), d, audit.Query{Limit: 99})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A change without a file has the same problems as with one.
func TestAProblemNamesObjectFieldAndFix(t *testing.T) {
	t.Parallel()
	env := changeEnv(t, dbtest.SQLite(t))
	m := readAll(t, env).NewMerchant("m1")
	m.Name, m.Notify.Ack, m.Notify.Timeout, m.Notify.MaxInFlight = strings.Repeat("x", 201), "loud", time.Minute, 0
	m.Notify.URLs, m.Notify.Events = []string{"http://a"}, []string{"order.paid", "order.paid"}
	rate := 101
	m.Notify.Breaker.Rate = &rate
	m.Notify.Schedule = settings.Schedule{Name: "list", Waits: []time.Duration{time.Millisecond}}
	m.Notify.Endpoints = []settings.Endpoint{{Name: "B", Channel: "pigeon", URL: "https://b.example/", Weight: 1, Format: "standard"}}
	var got []string
	for _, p := range settings.NewChange(m1(), nil, m).Check(env) {
		got = append(got, fmt.Sprintf("%s: %s: %s", p.Object, p.Field, p.Fix(p.Twin)))
	}
	said := strings.Join(got, "\n")
	for _, want := range []string{
		"merchant m1: name: at most 200 characters are allowed", `merchant m1: notify.ack: "loud" is not known; use status or text`,
		"merchant m1: notify.timeout: use a duration from 1s to 10s",
		"merchant m1: notify.max_in_flight: use a whole number from 1 to 1000",
		"merchant m1: notify.urls[0]: only https is reached", "merchant m1: notify.events[1]: the same as in notify.events[0]",
		"merchant m1: notify.breaker.rate: use a whole number from 0 to 100",
		"merchant m1: notify.schedule: bad schedule: the wait 1ms must be",
		`merchant m1: notify.endpoints[0].name: "B": use 1 to 64`, `merchant m1: notify.endpoints[0].channel: "pigeon" is not known`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d problems:\n%s", len(got), said)
	}
}
