package db_test

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/migrations"
)

// with returns the files of this program and more.
func with(t *testing.T, more fstest.MapFS) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	entries, err := migrations.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(migrations.Files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = &fstest.MapFile{Data: text}
	}
	maps.Copy(all, more)
	return all
}

// newer returns the files of a newer program, whose change runs alone.
func newer(t *testing.T) fs.FS {
	return with(t, fstest.MapFS{
		"20990101000000_lean.alone.tx.up.sql":   {Data: []byte("CREATE TABLE lean (a BIGINT)")},
		"20990101000000_lean.alone.tx.down.sql": {Data: []byte("DROP TABLE lean")},
	})
}

// eachNode runs the test on both engines with a function that opens processes on one
// database.
func eachNode(t *testing.T, test func(t *testing.T, open func(name string) *db.DB)) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := db.Options{Dir: t.TempDir()}
			if engine == "postgres" {
				o = db.Options{URL: dbtest.PostgresURL(t), Pool: 2}
			}
			test(t, func(name string) *db.DB {
				o.Node = name
				d, err := db.Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { d.Close() })
				return d
			})
		})
	}
}

// start migrates and joins, as serve does.
func start(t *testing.T, d *db.DB, files fs.FS) error {
	if _, err := d.Migrate(t.Context(), files); err != nil {
		return err
	}
	_, err := d.RegisterNode(t.Context(), files)
	return err
}

func has(t *testing.T, d *db.DB, table string) bool {
	t.Helper()
	_, err := d.Exec("SELECT 1 FROM " + table)
	return err == nil
}

func TestAMigrationThatRunsAloneWaitsUntilTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	eachNode(t, func(t *testing.T, open func(string) *db.DB) {
		one, command, two := open("n1"), open(""), open("n2")
		for _, d := range []*db.DB{one, command} {
			if err := start(t, d, migrations.Files); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.Publish(t.Context(), db.Fingerprint{Build: "v1 abc"}); err != nil {
			t.Fatal(err)
		}
		refused := func(d *db.DB, names ...string) {
			t.Helper()
			applied, err := d.Migrate(t.Context(), newer(t))
			if !errors.Is(err, db.ErrNotAlone) || len(applied) != 0 || has(t, d, "lean") {
				t.Fatalf("while another process runs: %v, %v", applied, err)
			}
			for _, name := range append(names, "20990101000000_lean.alone", "stop them") {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q is not named in: %v", name, err)
				}
			}
		}
		refused(two, "n1 (", "v1 abc", "a command (")
		if err := command.Close(); err != nil {
			t.Fatal(err)
		}
		refused(two, "n1 (")
		// The process counts until it was not seen for a while; then it is evicted.
		if _, err := two.NewRaw("UPDATE nodes SET seen_at = ?", two.Now()-31_000_000).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := start(t, two, newer(t)); err != nil || !has(t, two, "lean") {
			t.Fatalf("alone: %v", err)
		}
		if err := one.Beat(t.Context()); !errors.Is(err, db.ErrEvicted) {
			t.Errorf("the process that was suspended got %v", err)
		}
		three := open("n3")
		if name, err := three.Rollback(t.Context(), newer(t)); !errors.Is(err, db.ErrNotAlone) || !has(t, two, "lean") {
			t.Errorf("reverted while another process runs: %q, %v", name, err)
		}
		if err := two.Close(); err != nil {
			t.Fatal(err)
		}
		if name, err := three.Rollback(t.Context(), newer(t)); err != nil || name != "20990101000000_lean.alone" || has(t, three, "lean") {
			t.Errorf("reverted alone: %q, %v", name, err)
		}
		if err := start(t, three, migrations.Files); err != nil {
			t.Errorf("the previous version, afterwards: %v", err)
		}
	})
}

func TestAProgramDoesNotStartWhereAMigrationThatRunsAloneIsUnknownToIt(t *testing.T) {
	t.Parallel()
	eachNode(t, func(t *testing.T, open func(string) *db.DB) {
		before, late := open("n1"), open("n2")
		compatible := with(t, fstest.MapFS{"20980101000000_more.tx.up.sql": {Data: []byte("CREATE TABLE more (a BIGINT)")}})
		if _, err := late.Migrate(t.Context(), compatible); err != nil {
			t.Fatal(err)
		}
		if _, err := late.Migrate(t.Context(), migrations.Files); err != nil {
			t.Errorf("during a change that others can work with: %v", err)
		}
		if err := late.CheckSchema(t.Context(), migrations.Files); err != nil {
			t.Errorf("during a change that others can work with: %v", err)
		}
		if _, err := before.Migrate(t.Context(), newer(t)); err != nil {
			t.Fatal(err)
		}
		_, migrate := late.Migrate(t.Context(), migrations.Files)
		_, join := late.RegisterNode(t.Context(), migrations.Files)
		for what, err := range map[string]error{"migrate": migrate, "join": join, "check": late.CheckSchema(t.Context(),
			migrations.Files)} {
			if !errors.Is(err, db.ErrNewSchema) || !strings.Contains(err.Error(), "20990101000000_lean.alone") ||
				!strings.Contains(err.Error(), "migrate down") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// If a program joins while a newer one changes the schema, one of them is refused.
func TestAJoinAndAMigrationThatRunsAloneExcludeEachOther(t *testing.T) {
	t.Parallel()
	race(t, migrations.Files, newer(t), func(t *testing.T, d *db.DB) error { return start(t, d, migrations.Files) })
}

// The migration sees a join that is in progress when it looks for other processes.
func TestAMigrationThatRunsAloneWaitsForAJoinThatIsUnderWay(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	one, two := named(t, url, "n1"), named(t, url, "n2")
	tx, err := one.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.NewRaw("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (5, 'x', 'n1', 5, 1, ?)",
		one.Now()).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	go func() {
		_, err := two.Migrate(t.Context(), newer(t))
		changed <- err
	}()
	waittest.Until(t, "the migration waits", func() bool {
		var waits bool
		err := one.NewRaw("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'nodes'::regclass)").Scan(t.Context(),
			&waits)
		return err == nil && waits
	})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-changed; !errors.Is(err, db.ErrNotAlone) {
		t.Errorf("the migration ended with %v", err)
	}
}

// race makes a program join while another one changes the schema, many times.
func race(t *testing.T, older, newer fs.FS, join func(t *testing.T, d *db.DB) error) {
	eachNode(t, func(t *testing.T, open func(string) *db.DB) {
		between := open("")
		before, err := between.Migrate(t.Context(), older)
		if err != nil {
			t.Fatal(err)
		}
		joins, changes, rounds := 0, 0, 30
		if testing.Short() {
			rounds = 6
		}
		for range rounds {
			one, two := open("n1"), open("n2")
			var joined, changed error
			var wg sync.WaitGroup
			wg.Go(func() { joined = join(t, one) })
			wg.Go(func() { _, changed = two.Migrate(t.Context(), newer) })
			wg.Wait()
			switch {
			case joined == nil && errors.Is(changed, db.ErrNotAlone):
				joins++
			case joined != nil && changed == nil:
				changes++
			default:
				t.Fatalf("the join ended with %v, the migration with %v", joined, changed)
			}
			one.Close()
			two.Close()
			if _, err := between.NewRaw("DELETE FROM nodes").Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := between.NewestMigration(t.Context(), newer)
				if err != nil {
					t.Fatal(err)
				}
				if m.Name == before[len(before)-1] {
					break
				}
				if _, err := between.Rollback(t.Context(), newer); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("%d joins, %d migrations", joins, changes)
	})
}
