package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/verify"
	"backstop/migrations"
)

type backupCmd struct {
	File string `arg:"" help:"The file to write, which must not exist." type:"path"`
}

// Run copies the database, and verifies the books of the copy.
func (b *backupCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := ofSQLite(g)
	if err != nil {
		return err
	}
	if d, err := openReadOnly(ctx, c); err != nil {
		return err
	} else if err := d.Close(); err != nil {
		return err
	}
	if _, err := os.Lstat(b.File); err == nil {
		return fmt.Errorf("%s exists: name another file, or remove it", b.File)
	}
	// The copy is verified before it has its name, so that whatever has the name is complete.
	part, err := os.MkdirTemp(filepath.Dir(b.File), ".backstop-backup-")
	if err != nil {
		return fmt.Errorf("write beside %s: %w", b.File, err)
	}
	defer os.RemoveAll(part)
	if err := db.BackUp(ctx, c.Data, filepath.Join(part, db.File)); err != nil {
		return err
	}
	report, err := verifyFolder(ctx, c, part)
	if err != nil {
		return fmt.Errorf("verify the copy: %w", err)
	}
	if err := os.Rename(filepath.Join(part, db.File), b.File); err != nil {
		return err
	}
	if err := db.Sync(b.File, filepath.Dir(b.File)); err != nil {
		return err
	}
	written, err := os.Stat(b.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "backed up to %s: %d bytes. The master key is not in it: keep a copy of the key elsewhere.\n", b.File, written.Size())
	return printBooks(std, report)
}

type restoreCmd struct {
	File string `arg:"" help:"A file written by backup." type:"existingfile"`
}

// Run puts a backup into the place of the database, which is kept beside it.
func (r *restoreCmd) Run(ctx context.Context, g *globals, std streams) (err error) {
	c, err := ofSQLite(g)
	if err != nil {
		return err
	}
	folder, err := app.LockFolder(c.Data) // no server runs on it, and none starts meanwhile
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	part, err := os.MkdirTemp(c.Data, ".restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	if err := copyFile(r.File, filepath.Join(part, db.File)); err != nil {
		return err
	}
	report, err := verifyFolder(ctx, c, part)
	old := errors.Is(err, db.ErrOldSchema) // the server migrates it when it starts
	if err != nil && !old {
		return fmt.Errorf("%s was not restored: %w", r.File, err)
	}
	kept := filepath.Join(c.Data, db.File+".before-restore-"+time.Now().UTC().Format("20060102T150405Z"))
	moved, err := replace(ctx, c.Data, filepath.Join(part, db.File), kept)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "restored %s.", r.File)
	if moved {
		fmt.Fprintf(std.out, " The database that was there is now %s.", kept)
	}
	fmt.Fprintln(std.out, " Start the server with the master key of that time.")
	if old {
		fmt.Fprintln(std.out, "Its schema is of an earlier version, which the server migrates: run backstop verify afterwards.")
		return nil
	}
	return printBooks(std, report)
}

// ofSQLite returns the configuration of an installation on SQLite.
func ofSQLite(g *globals) (config.Config, error) {
	c, err := g.load()
	if err == nil && c.DatabaseURL.IsSet() {
		err = errors.New("the database is PostgreSQL: use pg_dump and pg_restore, or point-in-time recovery (docs/operations/storage.md, Backup and restore)")
	}
	return c, err
}

// verifyFolder verifies the books of the database in a folder.
func verifyFolder(ctx context.Context, c config.Config, dir string) (verify.Report, error) {
	d, err := db.Open(ctx, db.Options{Dir: dir, Pool: 2})
	if err != nil {
		return verify.Report{}, err
	}
	defer d.Close()
	if err := d.CheckSchema(ctx, migrations.Files); err != nil {
		return verify.Report{}, err
	}
	return verifyBooks(ctx, c, d, func(verify.Progress) {})
}

// printBooks says whether the books of a copy are right.
func printBooks(std streams, report verify.Report) error {
	if !report.OK() {
		fmt.Fprintln(std.out, "Its books have violations: backstop verify lists those of the server.")
		return errViolations
	}
	fmt.Fprintf(std.out, "Its books are right: %d rows examined.\n", report.Examined())
	return nil
}

// replace puts a file into the place of the database, and keeps that one; false = there was none. Where
// that one can be opened, there is a whole database at each moment, so that a server that starts after a
// crash finds one.
func replace(ctx context.Context, dir, from, kept string) (had bool, err error) {
	to := filepath.Join(dir, db.File)
	if err := db.Sync(from); err != nil {
		return false, err
	}
	if _, err := os.Stat(to); err == nil {
		if old, err := db.Open(ctx, db.Options{Dir: dir, Pool: 1}); err != nil { // it is broken
			had, err = setAside(to, kept)
			if err != nil {
				return had, err
			}
		} else {
			if err := old.Close(); err != nil { // the last connection moves the log into the database
				return false, err
			}
			if _, err := os.Stat(to + "-wal"); err == nil {
				return false, errors.New("another command works on the database: wait until it has ended")
			}
			if err := os.Link(to, kept); err != nil {
				return false, fmt.Errorf("keep the database: %w", err)
			}
			had = true
		}
	}
	if err := os.Rename(from, to); err != nil {
		return had, err
	}
	return had, db.Sync(dir)
}

// setAside renames a database with what SQLite keeps beside it; false = there was none.
func setAside(from, to string) (moved bool, err error) {
	for _, end := range []string{"-wal", "-shm", ""} { // the log first: without it the database lacks its last commits
		err := os.Rename(from+end, to+end)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return moved, fmt.Errorf("set the database aside: %w", err)
		}
		moved = moved || err == nil
	}
	return moved, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return out.Close()
}
