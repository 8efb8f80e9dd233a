package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/migrations"
)

// Not in parallel: a node that migrates waits for the lock of the file, not for the processor.
func TestMigrateIsRacedByManyNodesAndRunsOnce(t *testing.T) {
	url := dbtest.PostgresURL(t)
	dir := t.TempDir()
	for name, o := range map[string]db.Options{"sqlite": {Dir: dir}, "postgres": {URL: url, Pool: 2}} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			total := 0
			for range 4 {
				wg.Go(func() {
					d, err := db.Open(t.Context(), o)
					if err != nil {
						t.Error(err)
						return
					}
					defer d.Close()
					done, err := d.Migrate(t.Context(), migrations.Files)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					total += len(done)
					mu.Unlock()
				})
			}
			wg.Wait()
			if want := len(later(t)) + 1; total != want {
				t.Errorf("%d migrations applied in all, want %d", total, want)
			}
		})
	}
}

// later returns the migrations after the baseline, oldest first.
func later(t *testing.T) (names []string) {
	t.Helper()
	files, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, _, _ := strings.Cut(f, ".")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// What comes after the baseline goes up, down and up again; the baseline stays.
func TestAMigrationAfterTheBaselineIsRevertedAndDoneAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		next := with(t, fstest.MapFS{
			"20990101000000_notes.tx.up.sql":   {Data: []byte("ALTER TABLE skus ADD COLUMN note TEXT NOT NULL DEFAULT ''")},
			"20990101000000_notes.tx.down.sql": {Data: []byte("ALTER TABLE skus DROP COLUMN note")},
		})
		for range 2 {
			if err := d.CheckSchema(t.Context(), next); !errors.Is(err, db.ErrOldSchema) {
				t.Errorf("before it: %v", err)
			}
			applied, err := d.Migrate(t.Context(), next)
			if err != nil || len(applied) != 1 || applied[0] != "20990101000000_notes" {
				t.Fatalf("applied %v, %v", applied, err)
			}
			if _, err := d.Exec("UPDATE skus SET note = 'x'"); err != nil {
				t.Error(err)
			}
			for _, files := range []fs.FS{next, migrations.Files} { // the previous program goes on
				if err := d.CheckSchema(t.Context(), files); err != nil {
					t.Error(err)
				}
			}
			if name, err := d.Rollback(t.Context(), next); err != nil || name != "20990101000000_notes" {
				t.Fatalf("reverted %q, %v", name, err)
			}
		}
		for _, was := range slices.Backward(later(t)) {
			if name, err := d.Rollback(t.Context(), next); err != nil || name != was {
				t.Fatalf("reverted %q, %v; want %s", name, err, was)
			}
		}
		if name, err := d.Rollback(t.Context(), next); err == nil || !strings.Contains(err.Error(), "migration base cannot be reverted") {
			t.Errorf("the baseline: %q, %v", name, err)
		}
	})
}

// A database of a build from before the first release is not touched.
func TestADatabaseFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	t.Parallel()
	eachNode(t, func(t *testing.T, open func(string) *db.DB) {
		d := open("n1")
		for _, statement := range []string{
			"CREATE TABLE schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)",
			"INSERT INTO schema_migrations (name, applied_at) VALUES ('20261121000001_core', 1)",
		} {
			if _, err := d.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		applied, migrate := d.Migrate(t.Context(), migrations.Files)
		_, newest := d.NewestMigration(t.Context(), migrations.Files)
		check := d.CheckSchema(t.Context(), migrations.Files)
		for what, err := range map[string]error{"migrate": migrate, "newest": newest, "check": check} {
			if !errors.Is(err, db.ErrNoRelease) || !strings.Contains(err.Error(), "start with an empty database") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if len(applied) != 0 || has(t, d, "orders") {
			t.Errorf("it was changed: %v", applied)
		}
	})
}

func TestBrokenMigrationLeavesNothingAndNoLock(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		broken := with(t, fstest.MapFS{
			"20990101000000_x.tx.up.sql": {Data: []byte("CREATE TABLE half (a BIGINT); CREATE TABLE half (a BIGINT);")},
		})
		if _, err := d.Migrate(t.Context(), broken); err == nil {
			t.Fatal("a broken migration passed")
		}
		fixed := with(t, fstest.MapFS{
			"20990101000000_x.tx.up.sql":     {Data: []byte("CREATE TABLE half (a BIGINT); CREATE TABLE half2 (a BIGINT);")},
			"20990101000001_i.pg.up.sql":     {Data: []byte("CREATE INDEX CONCURRENTLY IF NOT EXISTS half_a ON half (a)")},
			"20990101000001_i.sqlite.up.sql": {Data: []byte("CREATE INDEX IF NOT EXISTS half_a ON half (a)")},
		})
		done, err := d.Migrate(t.Context(), fixed)
		if err != nil || len(done) != 2 {
			t.Fatalf("after the repair: %v, %v", done, err)
		}
	})
}

func TestIDsAreUniqueAndGrow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		last := int64(0)
		for range 10_000 {
			id := d.NewID()
			if id <= last {
				t.Fatalf("id %d after %d", id, last)
			}
			last = id
		}
		if at := time.UnixMicro(db.IDTime(last)); time.Since(at).Abs() > 5*time.Second {
			t.Errorf("the id is of %s", at)
		}
		if id := d.NewID(); db.IDAt(db.IDTime(id)) > id || db.IDAt(db.IDTime(id)+1000) <= id {
			t.Error("IDAt and IDTime disagree")
		}
	})
}

func TestNodesOfOneNameFindTheirEarlierBoots(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	a := dbtest.Open(t, db.Options{URL: url, Node: "n1", Sends: true})
	crashed := a.Boot()
	db.LoseName(a)
	b, err := db.Open(t.Context(), db.Options{URL: url, Node: "n1", Sends: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	earlier, err := b.RegisterNode(t.Context(), migrations.Files)
	if err != nil || len(earlier) != 1 || earlier[0] != crashed {
		t.Fatalf("earlier boots = %v, %v; want [%d]", earlier, err, crashed)
	}
	if a.NewID()>>12&1023 == b.NewID()>>12&1023 {
		t.Error("two processes share a slot")
	}
	if err := b.Beat(t.Context()); err != nil || b.Senders() != 2 {
		t.Errorf("%d processes send, %v; want 2", b.Senders(), err)
	}
	if alone, err := b.Alone(t.Context()); err != nil || alone {
		t.Errorf("alone while another process runs: %t, %v", alone, err)
	}
	if err := b.Forget(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	if alone, err := b.Alone(t.Context()); err != nil || !alone {
		t.Errorf("alone without another process: %t, %v", alone, err)
	}
	if err := b.Beat(t.Context()); err != nil || b.Senders() != 1 {
		t.Errorf("%d processes send, %v; want 1", b.Senders(), err)
	}
	if err := a.Beat(t.Context()); !errors.Is(err, db.ErrEvicted) {
		t.Errorf("the evicted process got %v", err)
	}
}

// The running processes that send share a rate.
func TestSendersAreTheProcessesThatSend(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]db.Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: dbtest.PostgresMigratedURL(t)}} {
		t.Run(name, func(t *testing.T) {
			open := func(sends bool) *db.DB {
				o.Sends = sends
				return dbtest.Open(t, o)
			}
			web := open(false)
			want := func(n int, when string) {
				t.Helper()
				if err := web.Beat(t.Context()); err != nil || web.Senders() != n {
					t.Errorf("%s: %d processes send, %v; want %d", when, web.Senders(), err, n)
				}
			}
			want(1, "no process sends, and a share is one of at least one")
			worker := open(true)
			open(true)
			want(2, "two workers")
			open(false)
			want(2, "another that does not send")
			row := "INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (?, 'x', '', ?, 1, ?)"
			if _, err := web.NewRaw(row, 77, 77, web.Now()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(3, "a third")
			if _, err := web.NewRaw(row, 78, 78, web.Now()-60_000_000).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(3, "one that is gone")
			if err := worker.Close(); err != nil {
				t.Fatal(err)
			}
			want(2, "a worker ended")
		})
	}
}

func TestDatabaseClockIsIndependentOfTheWall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if s := d.Skew(); s.Abs() > time.Second {
			t.Errorf("skew on one machine: %s", s)
		}
		a := d.Now()
		if b := d.Now(); b < a || b-a > 1_000_000 {
			t.Errorf("clock went from %d to %d", a, b)
		}
	})
}

func TestBatcherAnswersEachCallerByItsOwnItem(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		bad := errors.New("bad item")
		b := db.NewBatcher(d, db.BatchOptions[int, int]{Size: 16, Writers: 2, Queue: 1000, Wait: 5 * time.Second},
			func(ctx context.Context, tx db.Tx, items []int) ([]int, error) {
				out := make([]int, len(items))
				for i, n := range items {
					if n == 13 {
						return nil, bad
					}
					if _, err := tx.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?)", fmt.Sprint("k", n),
						n).Exec(ctx); err != nil {
						return nil, err
					}
					out[i] = n * 2
				}
				return out, nil
			})
		defer b.Close()
		var wg sync.WaitGroup
		for n := range 200 {
			wg.Go(func() {
				got, err := b.Do(t.Context(), n)
				if n == 13 {
					if !errors.Is(err, bad) {
						t.Errorf("item 13: %v", err)
					}
				} else if err != nil || got != n*2 {
					t.Errorf("item %d: %d, %v", n, got, err)
				}
			})
		}
		wg.Wait()
		var rows int
		if err := d.NewRaw("SELECT count(*) FROM settings WHERE name LIKE 'k%'").Scan(t.Context(), &rows); err != nil || rows != 199 {
			t.Errorf("%d rows, %v: one bad item must not stop the others", rows, err)
		}
	})
}

// On SQLite, a number that is a table's only key is the row's own number: inserts maintain no
// second index for it.
func TestANumberAsKeyIsNoIndexOfItsOwn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var tables []string
	err := d.NewRaw(`SELECT i.tbl_name FROM sqlite_master AS i WHERE i.name LIKE 'sqlite_autoindex_%' AND
		(SELECT count(*) FROM pragma_index_info(i.name)) = 1 AND EXISTS (SELECT 1 FROM pragma_index_info(i.name) AS c
		JOIN pragma_table_info(i.tbl_name) AS x ON x.name = c.name WHERE x.pk = 1 AND x.type = 'BIGINT')`).Scan(t.Context(), &tables)
	if err != nil || len(tables) > 0 {
		t.Errorf("these keep an index of their number: %v, %v", tables, err)
	}
	var typ string
	if err := d.NewRaw("SELECT type FROM pragma_table_info('orders') WHERE name = 'id'").Scan(t.Context(), &typ); err != nil ||
		typ != "INTEGER" {
		t.Errorf("orders.id is %q, %v", typ, err)
	}
}
