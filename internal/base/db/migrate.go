package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/failpoint"

	"github.com/uptrace/bun"
)

// atUpgrade is the failpoint before, within and after each step of an upgrade.
const atUpgrade = "upgrade"

// Migration is one schema change and whether the database has it.
type Migration struct {
	Name      string   // "20270115093000_notes"; ends in ".alone" if it must run alone
	AppliedAt int64    // Unix µs; 0 = pending
	up, down  []string // file names, in order
	tx        bool     // runs inside a transaction (".tx." in the file name)
}

// baseline is the name of the first migration: the schema of the first release, which has no way
// down.
const baseline = "base"

// aloneMark is the suffix of a migration that older programs cannot work with. Such a
// migration begins only when no other process of the installation is running, and a program
// that lacks it does not start on its schema. The mark is part of the name because the name is
// all that an older program can read of a migration.
const aloneMark = ".alone"

func (m Migration) alone() bool { return strings.HasSuffix(m.Name, aloneMark) }

// migrationLock is the advisory lock that PostgreSQL nodes take to migrate.
const migrationLock = 7_265_001

// gap is the pause after each step of an upgrade on SQLite. Other processes wait for the writer
// by polling up to every 100 ms: without a pause, they could miss all their turns.
const gap = 5 * time.Millisecond

// Migrate brings the schema up to date and returns the names of the migrations that it
// applied. Several nodes may race: each file runs in a transaction that holds the lock and
// also records the migration, so a kill at any moment leaves it either done or not begun. (A
// library that locks with a row and records separately guarantees neither.) Errors:
// ErrNewSchema, ErrNoRelease, ErrNotAlone.
func (d *DB) Migrate(ctx context.Context, files fs.FS) (applied []string, err error) {
	if err := d.createMigrationTable(ctx); err != nil {
		return nil, err
	}
	all, unknown, err := d.migrationState(ctx, d.DB, files)
	if err == nil {
		err = refuseAlone(unknown)
	}
	if err != nil {
		return nil, err
	}
	upgrade := slices.ContainsFunc(all, func(m Migration) bool { return m.AppliedAt != 0 })
	for _, m := range all {
		did, err := d.migrateOne(ctx, files, m, true)
		if err != nil {
			return applied, fmt.Errorf("migration %s: %w", m.Name, err)
		}
		if !did {
			continue
		}
		applied = append(applied, m.Name)
		if upgrade && !d.postgres {
			time.Sleep(gap)
		}
	}
	return applied, nil
}

// Rollback reverts the newest applied migration and returns its name, or "" if there is none.
// Errors: ErrNewSchema, ErrNotAlone.
func (d *DB) Rollback(ctx context.Context, files fs.FS) (string, error) {
	m, err := d.NewestMigration(ctx, files)
	if err != nil || m == nil {
		return "", err
	}
	if len(m.down) == 0 {
		return "", fmt.Errorf("migration %s cannot be reverted: it has no .down.sql", m.Name)
	}
	if _, err := d.migrateOne(ctx, files, *m, false); err != nil {
		return "", fmt.Errorf("migration %s: %w", m.Name, err)
	}
	return m.Name, nil
}

// NewestMigration returns the migration that Rollback would revert, or nil. A schema that is
// newer than the program cannot be reverted: this program does not have the files. Errors:
// ErrNewSchema.
func (d *DB) NewestMigration(ctx context.Context, files fs.FS) (newest *Migration, err error) {
	all, unknown, err := d.migrationState(ctx, d.Read, files)
	if errors.Is(err, ErrNoSchema) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%w: %s is unknown here: revert it with the program that applied it", ErrNewSchema, slices.Max(unknown))
	}
	for i := range all {
		if all[i].AppliedAt != 0 {
			newest = &all[i]
		}
	}
	return newest, nil
}

// MigrationStatus lists all known migrations in order. It creates nothing: without a schema,
// all of them are pending.
func (d *DB) MigrationStatus(ctx context.Context, files fs.FS) ([]Migration, error) {
	all, _, err := d.migrationState(ctx, d.Read, files)
	if err != nil && !errors.Is(err, ErrNoSchema) {
		return nil, err
	}
	return all, nil
}

// Errors of CheckSchema.
var (
	ErrNoSchema  = errors.New("the database is empty: start the server first (backstop serve), or run backstop migrate up")
	ErrOldSchema = errors.New("the schema is older than this program: run backstop migrate up")
	ErrNewSchema = errors.New("the schema is newer than this program")
	ErrNoRelease = errors.New("the database was made by a build from before the first release, from which none can go on: start with an empty database")
)

// ErrNotAlone means that a migration has to wait until the other processes have ended.
var ErrNotAlone = errors.New("other processes of the installation are running")

// CheckSchema checks that this program can work with the schema: the schema has all migrations
// of the program, and no unknown one that must run alone. Other newer migrations are fine:
// changes expand first and contract a release later. Errors: ErrNoSchema, ErrOldSchema,
// ErrNewSchema, ErrNoRelease.
func (d *DB) CheckSchema(ctx context.Context, files fs.FS) error {
	return d.checkSchema(ctx, d.Read, files)
}

func (d *DB) checkSchema(ctx context.Context, q bun.IDB, files fs.FS) error {
	all, unknown, err := d.migrationState(ctx, q, files)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(m Migration) bool { return m.AppliedAt == 0 }) {
		return ErrOldSchema
	}
	return refuseAlone(unknown)
}

// refuseAlone returns ErrNewSchema if one of the unknown migrations must run alone.
func refuseAlone(unknown []string) error {
	for _, name := range slices.Sorted(slices.Values(unknown)) {
		if (Migration{Name: name}).alone() {
			return fmt.Errorf(
				"%w, which cannot work with %s: start the newer program, or use it to revert that migration (backstop migrate down)",
				ErrNewSchema, name)
		}
	}
	return nil
}

// beAlone checks that no other process of the installation is running, and keeps others from
// joining until the transaction ends: processes of this program wait for migrationLock, older
// ones for the lock of the table. It removes the rows of processes that ended without removing
// them; a process that was only suspended is evicted at its next beat.
func (d *DB) beAlone(ctx context.Context, tx Tx) error {
	if d.postgres {
		if _, err := tx.ExecContext(ctx, "LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	var rows []struct{ Name, Process, Build string }
	err := tx.NewRaw("SELECT name, process, build FROM nodes WHERE boot <> ? AND seen_at > ? ORDER BY name, slot",
		d.node.boot, d.Now()-NodeGone.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		_, err = tx.ExecContext(ctx, "DELETE FROM nodes")
		return err
	}
	running := make([]string, len(rows))
	for i, r := range rows {
		running[i] = fmt.Sprintf("%s (%s, %s)", cmp.Or(r.Name, "a command"), r.Process, cmp.Or(r.Build, "unknown version"))
	}
	return fmt.Errorf(
		"%w, and this change of the schema needs all of them stopped: %s: stop them, then try again (a killed process counts as running for %.0f s)",
		ErrNotAlone, strings.Join(running, ", "), NodeGone.Seconds())
}

// migrationState returns all known migrations in order, and the names of applied ones that are
// unknown here. With ErrNoSchema, all of them are pending. Errors: ErrNoSchema, ErrNoRelease.
func (d *DB) migrationState(ctx context.Context, q bun.IDB, files fs.FS) (all []Migration, unknown []string, err error) {
	all, err = d.migrations(files)
	if err != nil {
		return nil, nil, err
	}
	applied, err := d.appliedMigrations(ctx, q)
	if len(applied) > 0 && applied[baseline] == 0 {
		return nil, nil, ErrNoRelease
	}
	for i := range all {
		all[i].AppliedAt = applied[all[i].Name]
		delete(applied, all[i].Name)
	}
	return all, slices.Collect(maps.Keys(applied)), err
}

func (d *DB) migrateOne(ctx context.Context, files fs.FS, m Migration, up bool) (did bool, err error) {
	names := m.up
	if !up {
		names = m.down
	}
	var text strings.Builder
	for _, name := range names {
		part, err := fs.ReadFile(files, name)
		if err != nil {
			return false, err
		}
		text.Write(part)
	}
	err = retryLocked(func() error {
		did, err = d.migrateTx(ctx, m, text.String(), up)
		return err
	})
	if did {
		failpoint.Hit(atUpgrade)
	}
	return did, err
}

// changeSchema runs a change in a transaction, on one node at a time. The change must do
// nothing if it is already done.
func (d *DB) changeSchema(ctx context.Context, change func(context.Context, Tx) error) error {
	return d.Tx(ctx, func(ctx context.Context, tx Tx) error {
		if err := lockMigrations(ctx, tx); err != nil {
			return err
		}
		return change(ctx, tx)
	})
}

// retryLocked repeats a schema change whose table is in use: lock_timeout lets traffic pass
// instead of queueing it behind the change.
func retryLocked(change func() error) error {
	for try := 1; ; try++ {
		err := change()
		if err == nil || try == 5 || !IsConflict(err) {
			return err
		}
		time.Sleep(time.Duration(try) * 200 * time.Millisecond)
	}
}

// lockMigrations makes nodes change the schema one after the other. On SQLite the transaction
// itself does so.
func lockMigrations(ctx context.Context, tx Tx) error {
	if !tx.db.IsPostgres() {
		return nil
	}
	for _, statement := range []string{
		"SET LOCAL lock_timeout = '60s'", fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock), "SET LOCAL lock_timeout = '2s'",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) migrateTx(ctx context.Context, m Migration, text string, up bool) (did bool, err error) {
	err = d.changeSchema(ctx, func(ctx context.Context, tx Tx) error {
		did = false
		applied, err := d.appliedMigrations(ctx, tx)
		if err != nil {
			return err
		}
		if (applied[m.Name] != 0) == up {
			return nil
		}
		if m.alone() {
			if err := d.beAlone(ctx, tx); err != nil {
				return err
			}
		}
		// A file without ".tx" has statements that cannot run in a transaction (such as an
		// index that is built concurrently): it runs on another connection, under this lock,
		// and must be safe to run twice.
		var exec bun.IDB = tx
		if !m.tx && d.postgres {
			exec = d.DB
		}
		failpoint.Hit(atUpgrade)
		if _, err := exec.ExecContext(ctx, d.schemaText(text)); err != nil {
			return err
		}
		failpoint.Hit(atUpgrade)
		did = true
		if up {
			_, err = tx.NewRaw("INSERT INTO schema_migrations (name, applied_at) VALUES (?, ?)", m.Name, d.Now()).Exec(ctx)
		} else {
			_, err = tx.NewRaw("DELETE FROM schema_migrations WHERE name = ?", m.Name).Exec(ctx)
		}
		failpoint.Hit(atUpgrade)
		return err
	})
	return did, err
}

func (d *DB) createMigrationTable(ctx context.Context) error {
	const ddl = "CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)"
	create := func() error {
		_, err := d.ExecContext(ctx, ddl)
		return err
	}
	err := retryLocked(create) // with many nodes on SQLite, one may not get its turn in time
	if err != nil && d.postgres {
		// If two sessions create the same table at once, one fails on the catalogue's own
		// unique index, in spite of IF NOT EXISTS.
		err = create()
	}
	switch {
	case IsReadOnly(err) && d.postgres:
		return fmt.Errorf("%w: set BACKSTOP_DATABASE_URL to the primary: %w", ErrReadOnly, err)
	case err != nil:
		return fmt.Errorf("create schema_migrations: %w", err)
	}
	return nil
}

// appliedMigrations returns when migrations were applied, by name. Errors: ErrNoSchema.
func (d *DB) appliedMigrations(ctx context.Context, q bun.IDB) (map[string]int64, error) {
	var there bool
	if err := q.NewRaw(d.tableQuery(), "schema_migrations").Scan(ctx, &there); err != nil {
		return nil, fmt.Errorf("look for schema_migrations: %w", err)
	}
	if !there {
		return nil, ErrNoSchema
	}
	var rows []struct {
		Name      string
		AppliedAt int64
	}
	if err := q.NewRaw("SELECT name, applied_at FROM schema_migrations").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read schema_migrations: %w", err)
	}
	applied := make(map[string]int64, len(rows))
	for _, r := range rows {
		applied[r.Name] = r.AppliedAt
	}
	return applied, nil
}

// migrations reads the file names: base.sql, continued in postgres.sql or sqlite.sql, and then
// NAME[.alone][.tx][.pg|.sqlite].up.sql. A file for this engine replaces the common one of the
// same name.
func (d *DB) migrations(files fs.FS) ([]Migration, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	mine, other, rest := ".sqlite.", ".pg.", "sqlite.sql"
	if d.postgres {
		mine, other, rest = other, mine, "postgres.sql"
	}
	found := map[string]*Migration{}
	for _, e := range entries {
		file := e.Name()
		if slices.Contains([]string{"base.sql", "postgres.sql", "sqlite.sql"}, file) || !strings.HasSuffix(file, ".sql") ||
			strings.Contains(file, other) {
			continue
		}
		name, rest, _ := strings.Cut(file, ".")
		if strings.Contains("."+rest, aloneMark+".") {
			name += aloneMark
		}
		m := found[name]
		if m == nil {
			m = &Migration{Name: name}
			found[name] = m
		}
		own := strings.Contains("."+rest, mine)
		switch {
		case strings.HasSuffix(file, ".up.sql"):
			if m.up == nil || own {
				m.up, m.tx = []string{file}, strings.Contains("."+rest, ".tx.")
			}
		case strings.HasSuffix(file, ".down.sql"):
			if m.down == nil || own {
				m.down = []string{file}
			}
		default:
			return nil, fmt.Errorf("migration file %s ends neither in .up.sql nor in .down.sql", file)
		}
	}
	all := []Migration{{Name: baseline, up: []string{"base.sql", rest}, tx: true}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name].up == nil {
			return nil, fmt.Errorf("migration %s has no .up.sql", name)
		}
		all = append(all, *found[name])
	}
	return all, nil
}
