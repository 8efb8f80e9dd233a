package db_test

import (
	"errors"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/migrations"
)

// named opens a node that has not joined yet. Names are locked on PostgreSQL only:
// SQLite has the lock of the data folder.
func named(t *testing.T, url, name string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: url, Node: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if _, err := d.Migrate(t.Context(), migrations.Files); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestASecondLivingNodeOfOneNameIsRefused(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one := dbtest.Open(t, db.Options{URL: url, Node: "n1"})
	if _, err := named(t, url, "n2").RegisterNode(t.Context(), migrations.Files); err != nil {
		t.Fatalf("another name: %v", err)
	}
	two := named(t, url, "n1")
	_, err := two.RegisterNode(t.Context(), migrations.Files)
	if !errors.Is(err, db.ErrNameTaken) || !strings.Contains(err.Error(), `"n1" belongs to`) ||
		!strings.Contains(err.Error(), " process ") {
		t.Fatalf("the second one got %v", err)
	}
	if err := one.Beat(t.Context()); err != nil {
		t.Errorf("the first one got %v", err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if earlier, err := two.RegisterNode(t.Context(), migrations.Files); err != nil || len(earlier) != 0 {
		t.Errorf("after an orderly end: %v, %v", earlier, err)
	}
	if !db.HasName(two) { // it would start without, after a wait
		t.Error("the name is not free at once")
	}
}

// Each schema is a separate installation.
func TestNamesOfTwoInstallationsInOneDatabaseAreTheirOwn(t *testing.T) {
	t.Parallel()
	for range 2 {
		if _, err := named(t, dbtest.PostgresURL(t), "same").RegisterNode(t.Context(), migrations.Files); err != nil {
			t.Error(err)
		}
	}
}

// A killed process leaves a row with a recent seen_at, and no lock.
func TestAKilledNodeMayStartAgainAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one := dbtest.Open(t, db.Options{URL: url, Node: "n1"})
	db.LoseName(one)
	again := named(t, url, "n1")
	earlier, err := again.RegisterNode(t.Context(), migrations.Files)
	if err != nil || len(earlier) != 1 {
		t.Errorf("earlier boots %v, %v", earlier, err)
	}
	if !db.HasName(again) {
		t.Error("the name is not free at once")
	}
}

// A machine that lost its power leaves a session that PostgreSQL takes for a live one, but no
// beats.
func TestAHolderThatWasNotSeenDoesNotCount(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one := dbtest.Open(t, db.Options{URL: url, Node: "n1"})
	if _, err := one.NewRaw("UPDATE nodes SET seen_at = ?", one.Now()-31_000_000).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	two := named(t, url, "n1")
	earlier, err := two.RegisterNode(t.Context(), migrations.Files)
	if err != nil || len(earlier) != 1 {
		t.Fatalf("earlier boots %v, %v", earlier, err)
	}
	if err := two.Forget(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	// A third process finds the second, although that one has no lock yet.
	if _, err := named(t, url, "n1").RegisterNode(t.Context(), migrations.Files); !errors.Is(err, db.ErrNameTaken) {
		t.Errorf("a third one got %v", err)
	}
	if err := one.Beat(t.Context()); !errors.Is(err, db.ErrEvicted) {
		t.Errorf("the suspended one got %v", err)
	}
	db.LoseName(one)
	waittest.Until(t, "the second one has the lock", func() bool { return db.HasName(two) })
}

func TestALostLockIsTakenAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one := dbtest.Open(t, db.Options{URL: url, Node: "n1"})
	for range 3 {
		db.BreakName(t, one)
		waittest.Until(t, "it is taken again", func() bool { return db.HasName(one) })
	}
	if err := one.Beat(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := named(t, url, "n1").RegisterNode(t.Context(), migrations.Files); !errors.Is(err, db.ErrNameTaken) {
		t.Errorf("a second one got %v", err)
	}
}

// If another process was faster after an outage of the database, the first one ends.
func TestWhoLostTheNameToAnotherEnds(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one, two := dbtest.Open(t, db.Options{URL: url, Node: "n1"}), named(t, url, "n1")
	db.StealName(t, one, two, migrations.Files)
	waittest.Until(t, "it is reported", func() bool { return errors.Is(one.Beat(t.Context()), db.ErrNameTaken) })
	if err := two.Beat(t.Context()); err != nil {
		t.Errorf("the other got %v", err)
	}
}

func TestOnlyWhatIsPublishedDiffers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if others, err := d.OthersReach(t.Context()); err != nil || others {
			t.Errorf("alone: %t, %v", others, err)
		}
		mine := db.Fingerprint{KeyIDs: "k1", Ranges: "none", Build: "v1 a", Shadow: "false"}
		if err := d.Publish(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		run := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		run("UPDATE nodes SET name = 'n1' WHERE boot = ?", d.Boot())
		run("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (9, 'x', 'old', 9, 1, ?)", d.Now())
		want := func(when string, reach bool, parts ...string) {
			t.Helper()
			nodes, err := d.Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := db.Differ(nodes); strings.Join(got, " ") != strings.Join(parts, " ") {
				t.Errorf("%s: %v differ, want %v", when, got, parts)
			}
			if others, err := d.OthersReach(t.Context()); err != nil || others != reach {
				t.Errorf("%s: others reach other addresses = %t, %v", when, others, err)
			}
		}
		want("one that has only just joined", false)
		run("UPDATE nodes SET key_ids = 'k1', ranges = 'none', build = 'v1 a' WHERE boot = 9")
		want("all alike", false)
		run("UPDATE nodes SET ranges = '127.0.0.0/8', key_ids = 'k2,k1' WHERE boot = 9")
		want("keys and ranges", true, db.PartKeys, db.PartRanges)
		run("UPDATE nodes SET build = 'v2 b', ranges = 'none', key_ids = 'k1' WHERE boot = 9")
		want("the build", false, db.PartBuild)
		run("UPDATE nodes SET build = 'v1 a', shadow = 'true' WHERE boot = 9")
		want("shadow mode", false, db.PartShadow)
		run("UPDATE nodes SET seen_at = ? WHERE boot = 9", d.Now()-31_000_000)
		want("one that is gone", false)
	})
}
