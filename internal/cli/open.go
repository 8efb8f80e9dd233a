// How commands open the database of a server. They never create one: on an empty database
// created by mistake, a command would report success without any effect on the server.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/migrations"
)

// open opens the database to write, possibly while a server runs. The caller closes it.
func open(ctx context.Context, c config.Config) (*db.DB, error) {
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, err := migrations.Join(ctx, d); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// openWithKeys is open for commands that write to the audit or seal secrets.
func openWithKeys(ctx context.Context, c config.Config, std streams, use useKeys) (*db.DB, *seal.Keyring, error) {
	if err := app.NeedKeys(c); err != nil { // before anything is changed
		return nil, nil, err
	}
	d, err := open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	keys, err := use(ctx, c, d, std)
	if err != nil {
		d.Close()
		return nil, nil, err
	}
	return d, keys, nil
}

// openReadOnly opens the database of a server, whose schema must be current.
func openReadOnly(ctx context.Context, c config.Config) (*db.DB, error) {
	d, err := openAny(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := d.CheckSchema(ctx, migrations.Files); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// openAny opens the database with any schema.
func openAny(ctx context.Context, c config.Config) (*db.DB, error) {
	if !c.DatabaseURL.IsSet() {
		if _, err := os.Stat(filepath.Join(c.Data, db.File)); errors.Is(err, fs.ErrNotExist) {
			return nil, noDatabase(c.Data)
		}
	}
	return db.Open(ctx, db.Options{URL: c.DatabaseURL.Reveal(), Dir: c.Data, Pool: 4})
}

// noDatabase says that a folder has no database, and where the one of a demo is.
func noDatabase(folder string) error {
	says := fmt.Sprintf("there is no database in %s: start the server first (backstop serve), or set BACKSTOP_DATA to its folder", folder)
	demo := filepath.Clean(folder) + demoFolder
	if _, err := os.Stat(filepath.Join(demo, db.File)); err == nil {
		says += fmt.Sprintf("; that of the demo is in %[1]s: BACKSTOP_DATA=%[1]s", demo)
	}
	return errors.New(says)
}
