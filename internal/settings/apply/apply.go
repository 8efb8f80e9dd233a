// Package apply creates and updates what a file declares: suppliers, merchants, stock,
// opening balances and subscriptions.
//
// A file is read and checked as a whole, then written in one transaction: an invalid file
// changes nothing. Applying the same file again reports every object as unchanged.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/base/textlimit"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/notify/webhook"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// Env has the dependencies and options of Apply.
type Env struct {
	DB     *db.DB
	Keys   *seal.Keyring
	Kinds  supplier.Kinds
	Ledger *ledger.Ledger
	// CheckURL, Channels and Credentials are those of settings.Env.
	CheckURL    func(string) error
	Channels    map[string]func(url string) error
	Credentials map[string]func(map[string]string) error
	Defaults    settings.Defaults
	// TestMode is that of settings.Env.
	TestMode bool
	// Force also writes suppliers, merchants and subscriptions that have not changed.
	Force bool
	// Token is the personal token of the operator who proposes the changes that need a second
	// person. Life is how long their proposals wait.
	Token string
	Life  time.Duration
	// Out gets one line per entry (created, changed, opened or unchanged) and one per field
	// that is proposed.
	Out io.Writer
}

func (e Env) settings() settings.Env {
	return settings.Env{
		DB: e.DB, Keys: e.Keys, Kinds: e.Kinds, Ledger: e.Ledger,
		CheckURL: e.CheckURL, Channels: e.Channels, Credentials: e.Credentials,
		Events: notify.Types, ParseSchedule: ParseSchedule, ParseSecret: webhook.ParseSecret,
		CheckHeaders: checkHeaders, EnableEndpoint: notify.EnableEndpoint, Defaults: e.Defaults, TestMode: e.TestMode,
	}
}

func checkHeaders(own map[string]string) error {
	if err := webhook.CheckHeaders(own); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), webhook.ErrHeader.Error()+": "))
	}
	return nil
}

// File is an unparsed apply file.
type File struct {
	Name string // for messages
	Dir  string // the folder that "file:PATH" is relative to
	Text []byte
}

// maxFile bounds a file in bytes; 10,000 entries with their keys inline stay below it.
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

// Read reads a declaration; name is for messages.
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

// busy bounds how long Apply retries after conflicts with other writers.
const busy = 20 * time.Second

// Apply reads the file and writes what it declares. A running server uses the new settings
// within two seconds. The error of an invalid file is *Invalid.
func Apply(ctx context.Context, env Env, f File) error {
	ctx, cancel := context.WithTimeout(ctx, busy)
	defer cancel()
	sum := sha256.Sum256(f.Text)
	record := audit.Act{
		Actor: audit.Command(), Action: "settings.apply", Object: "file", ObjectID: f.Name,
		Params: map[string]any{"sha256": hex.EncodeToString(sum[:])},
	}
	files := newKeyFiles(f.Dir)
	var d *declaration
	var by act.Actor
	var outcomes []settings.Outcome
	err := retryOnConflict(ctx, f, func() (err error) {
		if d, err = plan(ctx, env.settings(), f, files); err != nil {
			return err
		}
		if len(d.waits) > 0 { // before anything is applied: a file is not done by halves for want of a token
			if by, err = env.maker(ctx); err != nil {
				return err
			}
		}
		return env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
			outcomes, err = d.stored.Commit(ctx, tx, d.changes, env.Force, record)
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := report(env.Out, d.reported(outcomes)); err != nil {
		return err
	}
	if err := reportShared(ctx, env); err != nil || len(d.waits) == 0 {
		return err
	}
	p := &proposer{
		env: env, by: by, reason: fmt.Sprintf("apply %s, sha256 %x", textlimit.Clip(f.Name, maxShown), sum),
		made: map[settings.Object]bool{},
	}
	return retryOnConflict(ctx, f, func() error {
		d, err := plan(ctx, env.settings(), f, files)
		if err != nil {
			return err
		}
		return p.propose(ctx, d)
	})
}

// retryOnConflict repeats do after a conflict with another writer. do must read again what that one
// wrote.
func retryOnConflict(ctx context.Context, f File, do func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if !db.IsConflict(err) && !db.IsUnique(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("apply %s: the database was busy for %s: try again: %w", f.Name, busy, err)
		case <-time.After(pause):
		}
	}
}

// plan returns the changes from the stored settings to the file.
func plan(ctx context.Context, env settings.Env, f File, files *keyFiles) (*declaration, error) {
	stored, err := settings.Read(ctx, env)
	if err != nil {
		return nil, err
	}
	d, err := declare(env, f, files, stored)
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := d.books(ctx); err != nil {
		return nil, err
	}
	return d, d.split(ctx)
}

// report prints what was committed.
func report(out io.Writer, outcomes []settings.Outcome) error {
	for _, o := range outcomes {
		if _, err := fmt.Fprintln(out, o); err != nil {
			return fmt.Errorf("applied, but the report could not be written: %w", err)
		}
	}
	return nil
}

// reportShared prints which suppliers share a key, whichever of them the file names.
func reportShared(ctx context.Context, env Env) error {
	stored, err := settings.Read(ctx, env.settings())
	if err != nil {
		return fmt.Errorf("applied, but keys could not be compared: %w", err)
	}
	for _, line := range stored.SharedKeys() {
		if _, err := fmt.Fprintln(env.Out, "note: "+line); err != nil {
			return fmt.Errorf("applied, but the report could not be written: %w", err)
		}
	}
	return nil
}

// DryRun prints what Apply would change, with the old and new value of each field, and reports
// whether anything would change. It writes nothing. The error of an invalid file is *Invalid.
func DryRun(ctx context.Context, env Env, f File) (differs bool, err error) {
	d, err := plan(ctx, env.settings(), f, newKeyFiles(f.Dir))
	if err != nil {
		return false, err
	}
	var text strings.Builder
	for _, c := range d.changes {
		w := d.waiting(c.Object)
		if w != nil {
			c = w.change
		}
		o := c.Outcome(false)
		if o.What == settings.Changed {
			o.How = "" // the lines below show it
		}
		fmt.Fprintln(&text, o)
		if o.What == settings.Unchanged {
			continue
		}
		differs = true
		for _, x := range c.Diff() {
			fmt.Fprintf(&text, "  %s: %s → %s", x.Field, x.Old, x.New)
			if w != nil && waiting(w.fields, x) != "" {
				text.WriteString(" (waits for a second person)")
			}
			text.WriteByte('\n')
		}
	}
	_, err = io.WriteString(env.Out, text.String())
	return differs, err
}
