package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/settings"
)

// errNoKey means that an installation on SQLite has no master key yet; the first process that
// needs one makes it.
var errNoKey = errors.New("there is no master key")

// readKeys reads the master keys as configured, or from the file in the data folder. If they
// are missing, the error is ErrUsage or errNoKey. A key is never made for a shared database,
// because each node would make its own; nor for a configured file, because a forgotten mount
// must not lead to a temporary key.
func readKeys(c config.Config) (*seal.Keyring, error) {
	if c.MasterKey.IsSet() {
		return seal.ParseKeys(c.MasterKey.Reveal())
	}
	keys, err := seal.Load(c.MasterKeyPath())
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return keys, err
	case c.MasterKeyFile != "":
		return nil, fmt.Errorf("%w: the file of BACKSTOP_MASTER_KEY_FILE is missing (%s): put it there; backstop does not create it",
			ErrUsage, c.MasterKeyFile)
	case c.DatabaseURL.Reveal() != "":
		return nil, fmt.Errorf(
			"%w: BACKSTOP_DATABASE_URL needs a master key shared by all nodes and commands: make one (openssl rand -base64 32) and give it to each"+
				" in BACKSTOP_MASTER_KEY or BACKSTOP_MASTER_KEY_FILE", ErrUsage)
	}
	return nil, errNoKey
}

// NeedKeys returns an ErrUsage if the master key is missing and cannot be made. It is called
// before anything is changed.
func NeedKeys(c config.Config) error {
	if _, err := readKeys(c); errors.Is(err, ErrUsage) {
		return err
	}
	return nil
}

// KeysToRead is Keys for read-only commands: it makes no key. Without one the keyring is empty,
// and using it fails.
func KeysToRead(c config.Config) (*seal.Keyring, error) {
	keys, err := readKeys(c)
	named := c.MasterKey.IsSet() || c.MasterKeyFile != ""
	if !named && (errors.Is(err, errNoKey) || errors.Is(err, ErrUsage)) {
		return new(seal.Keyring), nil
	}
	return keys, err
}

// Keys opens the master keys. An installation on SQLite gets its key here once, in the data
// folder; this is reported on out.
func Keys(ctx context.Context, c config.Config, d *db.DB, out io.Writer) (*seal.Keyring, error) {
	keys, err := readKeys(c)
	if errors.Is(err, errNoKey) {
		return makeKey(ctx, c, d, out)
	}
	return keys, err
}

func makeKey(ctx context.Context, c config.Config, d *db.DB, out io.Writer) (*seal.Keyring, error) {
	path := c.MasterKeyPath()
	inUse, err := settings.KeyInUse(ctx, d.Read)
	if err != nil {
		return nil, err
	}
	sealed, err := settings.SealedUnder(ctx, d)
	if err != nil {
		return nil, err
	}
	if inUse == "" {
		inUse = strings.Join(sealed, ", ")
	}
	if inUse != "" {
		return nil, fmt.Errorf("%w (%s), and %s is missing: restore that file from its backup, or set BACKSTOP_MASTER_KEY",
			settings.ErrForeignKey, inUse, path)
	}
	keys, err := seal.LoadOrCreate(path)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(out,
		"master key made: %s (id %s): back it up apart from the database; without it no supplier key or signing secret can be read again\n",
		path, keys.ID())
	return keys, err
}

// checkKeys checks that this node can open currently sealed values.
func (a *App) checkKeys(ctx context.Context) error { return settings.CheckKeys(ctx, a.db, a.keys) }

// errKeys is the public text for readiness.
const errKeys = "the master key in use is not one of this node's: give it the key and restart it"

func keysKind(err error) string {
	if errors.Is(err, settings.ErrForeignKey) {
		return errKeys
	}
	return db.Kind(err)
}
