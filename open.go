// How commands come to the database of a server. They never make one: what is asked of
// an empty one that was made by mistake would be answered as if all were well, and what
// is written there nobody would read.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"backstop/internal/config"
	"backstop/internal/db"
	"backstop/migrations"
)

// open opens the database beside a running server to write. The caller closes it.
func (g *globals) open(ctx context.Context) (*db.DB, config.Config, error) {
	d, c, err := g.openToRead(ctx)
	if err != nil {
		return nil, c, err
	}
	if _, err := d.Join(ctx); err != nil {
		d.Close()
		return nil, c, err
	}
	return d, c, nil
}

// openToRead opens the database of a server, whose schema must be there.
func (g *globals) openToRead(ctx context.Context) (*db.DB, config.Config, error) {
	d, c, err := g.openAny(ctx)
	if err != nil {
		return nil, c, err
	}
	if err := d.CheckSchema(ctx, migrations.Files); err != nil {
		d.Close()
		return nil, c, err
	}
	return d, c, nil
}

// openAny opens the database, whatever its schema is.
func (g *globals) openAny(ctx context.Context) (*db.DB, config.Config, error) {
	c, err := g.load()
	if err != nil {
		return nil, c, err
	}
	if c.DatabaseURL.Reveal() == "" {
		if _, err := os.Stat(filepath.Join(c.Data, db.File)); errors.Is(err, fs.ErrNotExist) {
			return nil, c, fmt.Errorf("there is no database in %s: start the server first (backstop serve), or set BACKSTOP_DATA to its folder", c.Data)
		}
	}
	d, err := db.Open(ctx, db.Options{URL: c.DatabaseURL.Reveal(), Dir: c.Data, Pool: 4})
	return d, c, err
}
