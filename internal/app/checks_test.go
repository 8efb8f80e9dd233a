package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/alert"
)

// The response is public; the log, for operators, gets the details when a problem begins, not
// with each of a thousand probes.
func TestReadinessTellsTheKindAndTheLogTheRest(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := &App{o: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	var err error
	c := a.check("database", func(context.Context) error { return err }, func(error) string { return "away" })
	for _, step := range []struct {
		err   error
		lines int
	}{
		{nil, 0},
		{errors.New("no route to db.internal"), 1},
		{errors.New("no route to db.internal"), 1},
		{nil, 2},
		{nil, 2},
		{errors.New("again"), 3},
	} {
		err = step.err
		got := c.Run(t.Context())
		if (got == nil) != (err == nil) || got != nil && got.Error() != "away" {
			t.Errorf("%v is shown as %v", err, got)
		}
		if n := strings.Count(log.String(), "\n"); n != step.lines {
			t.Errorf("%d lines in the log, want %d:\n%s", n, step.lines, log.String())
		}
	}
	if !strings.Contains(log.String(), "db.internal") || !strings.Contains(log.String(), "ready again") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestEachCheckOfTheDatabaseTellsAKind(t *testing.T) {
	t.Parallel()
	a := opened(t)
	if err := a.db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range a.checks() {
		err := c.Run(t.Context())
		if c.Name == "suppliers" || c.Degrades {
			continue
		}
		if err == nil || err.Error() != "the database fails: see the log for the reason" {
			t.Errorf("%s is %v", c.Name, err)
		}
	}
}

// looks runs one check by name.
func looks(t *testing.T, a *App, name string) (shown string, degrades bool) {
	t.Helper()
	for _, c := range a.checks() {
		if c.Name == name {
			if err := c.Run(t.Context()); err != nil {
				shown = err.Error()
			}
			return shown, c.Degrades
		}
	}
	t.Fatalf("there is no check %s", name)
	return "", false
}

func TestANodeWithoutTheKeyInUseIsNotReady(t *testing.T) {
	t.Parallel()
	a := opened(t)
	if shown, _ := looks(t, a, "keys"); shown != "" {
		t.Fatal(shown)
	}
	if _, err := a.db.NewRaw("UPDATE master_key SET key_id = 'another'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if shown, degrades := looks(t, a, "keys"); shown != errKeys || degrades {
		t.Errorf("it is %q, only degraded = %t", shown, degrades)
	}
	if got := reading(a.readHere(t.Context()), alert.WrongKey); got != 100 {
		t.Errorf("the alert reads %d", got)
	}
}

func TestNodesThatDifferAreDegraded(t *testing.T) {
	t.Parallel()
	a := opened(t)
	look := func(want string) {
		t.Helper()
		if shown, degrades := looks(t, a, "nodes"); shown != want || !degrades {
			t.Errorf("it is %q, want %q; only degraded = %t", shown, want, degrades)
		}
		level := int64(0)
		if want != "" {
			level = 100
		}
		if got := reading(a.readShared(t.Context()), alert.NodesDiffer); got != level {
			t.Errorf("the alert reads %d, want %d", got, level)
		}
	}
	look("")
	_, err := a.db.NewRaw(
		"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, key_ids, ranges) VALUES (9, 'x', 'n2', 9, 1, ?, ?, '10.0.0.0/8')",
		a.db.Now(), a.keys.ID()).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	look("running nodes differ in BACKSTOP_NOTIFY_ALLOW_CIDRS")
	if _, err := a.db.NewRaw("UPDATE nodes SET seen_at = ? WHERE boot = 9", a.db.Now()-31_000_000).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("")
}

// The alerts about a node end with it; those of a running node stay.
func TestTheAlertsOfANodeThatIsGoneEnd(t *testing.T) {
	t.Parallel()
	a := opened(t)
	if _, err := a.db.NewRaw("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (9, 'x', 'n2', 9, 1, ?)",
		a.db.Now()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	stays := func(rule, subject string) bool {
		for _, r := range a.readShared(t.Context()) {
			if r.Rule == rule && r.Rest {
				return slices.Contains(r.Except, subject)
			}
		}
		return true
	}
	subjects := map[string]string{alert.RedisDown: "n2", alert.WrongKey: "n2", alert.ClockSkew: "n2 – Redis"}
	for rule, subject := range subjects {
		if !stays(rule, subject) {
			t.Errorf("%s of a running node would end", rule)
		}
	}
	if !stays(alert.QueueLength, "notify") || stays(alert.QueueLength, "of an old version") {
		t.Error("the alerts about queues end with this version's queues, or not with others")
	}
	if _, err := a.db.NewRaw("UPDATE nodes SET seen_at = 1 WHERE boot = 9").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for rule, subject := range subjects {
		if stays(rule, subject) {
			t.Errorf("%s of a node that is gone would stay", rule)
		}
	}
}

// reading returns the highest level among a rule's readings.
func reading(all []alert.Reading, rule string) (level int64) {
	for _, r := range all {
		if r.Rule == rule {
			level = max(level, r.Value)
		}
	}
	return level
}

func TestAClockIsAheadOrBehind(t *testing.T) {
	t.Parallel()
	for skew, want := range map[time.Duration]string{10 * time.Minute: "10m0s ahead of", -10 * time.Minute: "10m0s behind"} {
		if got := aheadOf(skew); got != want {
			t.Errorf("%s is %q, want %q", skew, got, want)
		}
	}
}

// The node is not ready when no supplier can be used, and degraded when some can.
func TestANodeWithoutAUsableSupplierIsNotReady(t *testing.T) {
	t.Parallel()
	a := opened(t)
	look := func(what, unusable, settings string) {
		t.Helper()
		if err := a.settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if shown, degrades := looks(t, a, "suppliers"); !strings.Contains(shown, unusable) || (shown == "") != (unusable == "") || degrades {
			t.Errorf("%s: it is %q, only degraded = %t", what, shown, degrades)
		}
		if shown, _ := looks(t, a, "settings"); !strings.Contains(shown, settings) || (shown == "") != (settings == "") {
			t.Errorf("%s: settings are %q", what, shown)
		}
	}
	look("new", "", "")
	for _, change := range []string{
		"INSERT INTO supplier_accounts (id, name) VALUES (1, 'odd')",
		"INSERT INTO suppliers (id, account_id, code, kind, enabled, config, allow_ips, created_at, updated_at)" +
			" VALUES (77, 1, 'odd', 'nokind', TRUE, '{}', '[]', 1, 1)",
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := a.db.NewRaw(change).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look("all unusable", "no enabled supplier", "supplier odd")
}
