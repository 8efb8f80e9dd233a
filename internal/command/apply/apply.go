// Package apply brings the database to what a file declares: suppliers,
// merchants, stock, opening balances and who else is told of events.
//
// A file is read and checked as a whole, then written in one transaction: an
// invalid one changes nothing. Applying the same file again changes nothing
// either, and says so.
package apply

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// Env is what Apply works with.
type Env struct {
	DB     *db.DB
	Keys   *seal.Keyring
	Kinds  supplier.Kinds
	Ledger *ledger.Book
	// CheckURL says whether a notification may be sent to an address at all.
	CheckURL func(string) error
	// Channels are the ways to reach somebody beside webhooks, by name: each says
	// whether it can use an address.
	Channels map[string]func(url string) error
	// Credentials say, by channel, what is wrong with an address's credentials.
	// Their errors hold none.
	Credentials map[string]func(map[string]string) error
	// Defaults are used where a merchant says nothing.
	Defaults Defaults
	// Force writes suppliers, merchants and subscriptions that have not changed, too.
	Force bool
	// Out gets one line per entry: created, changed, opened or unchanged.
	Out io.Writer
}

// Defaults say how a merchant is told that does not say it itself. Zero values
// stand for the contract's: schedule day, 10 s, 10 in flight.
type Defaults struct {
	Schedule    notify.Schedule
	Timeout     time.Duration
	MaxInFlight int
}

func (d Defaults) filled() Defaults {
	if d.Schedule == nil {
		d.Schedule = notify.Day()
	}
	if d.Timeout == 0 {
		d.Timeout = 10 * time.Second
	}
	if d.MaxInFlight == 0 {
		d.MaxInFlight = 10
	}
	return d
}

// File is a declaration as it came.
type File struct {
	Name string // as people know it, for messages
	Dir  string // what "file:PATH" is relative to
	Text []byte
}

// maxFile bounds a file; 10,000 entries with keys inside stay below it.
const maxFile = 8 << 20

// ReadFile reads a declaration from disk.
func ReadFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("read the file to apply: %w", err)
	}
	defer f.Close()
	return Read(filepath.Base(path), filepath.Dir(path), f)
}

// Read reads a declaration that people know by the name.
func Read(name, dir string, from io.Reader) (File, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("read the file to apply: %w", err)
	}
	if len(text) > maxFile {
		return File{}, fmt.Errorf("%s is larger than %d MiB: is it the right file?", name, maxFile>>20)
	}
	return File{Name: name, Dir: dir, Text: text}, nil
}

// wait bounds how long Apply tries to get past other writers.
const wait = 20 * time.Second

// Apply reads the file and writes what it declares. A running server uses it
// within two seconds. The error of a wrong file is *Invalid.
func Apply(ctx context.Context, env Env, f File) error {
	d, err := declare(env, f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var w writer
		err := env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			w = writer{env: env, tx: tx, now: env.DB.Now()}
			if err := w.write(ctx, d); err != nil {
				return err
			}
			return w.keep(ctx, f)
		})
		if err == nil {
			return w.report()
		}
		// Another writer was faster: what it wrote is seen on the next look.
		if !db.IsConflict(err) && !db.IsUnique(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("apply %s: the database was busy for %s, try again: %w", f.Name, wait, err)
		case <-time.After(pause):
		}
	}
}

// writer is one transaction of Apply.
type writer struct {
	env     Env
	tx      db.Tx
	now     int64
	entries []entry
	changed bool // whether running servers must read the settings again
	// disabled are the addresses that are disabled, by owner.
	disabled map[int64][]string
}

func (w *writer) write(ctx context.Context, d *declared) error {
	if err := settings.LockVersion(ctx, w.tx, w.env.DB); err != nil {
		return err
	}
	err := settings.ConfirmKey(ctx, w.tx, w.env.Keys)
	if err != nil {
		return err
	}
	if w.disabled, err = w.disabledAddresses(ctx); err != nil {
		return err
	}
	if err := w.suppliers(ctx, d.suppliers); err != nil {
		return err
	}
	if err := w.merchants(ctx, d); err != nil {
		return err
	}
	if err := w.subscriptions(ctx, d); err != nil {
		return err
	}
	if err := w.skus(ctx, d.skus); err != nil {
		return err
	}
	if err := w.accounts(ctx, d); err != nil {
		return err
	}
	if !w.changed {
		return nil
	}
	return settings.Bump(ctx, w.tx)
}

// report prints what was committed.
func (w *writer) report() error {
	for _, e := range w.entries {
		if _, err := fmt.Fprintln(w.env.Out, e.line()); err != nil {
			return fmt.Errorf("applied, but telling so: %w", err)
		}
	}
	return nil
}

// chunk bounds the values of one IN list.
const chunk = 1000
