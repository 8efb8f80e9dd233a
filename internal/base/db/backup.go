package db

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// BackUp writes the SQLite database of a folder into a new file, as it is at one moment, while a server
// writes to it. A file that exists is refused; after any other error a part may be left.
func BackUp(ctx context.Context, dir, to string) error {
	// A connection of its own: those of DB attach no other file, which this statement does.
	source := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(dir, File)}).EscapedPath(), RawQuery: "mode=rw&_pragma=busy_timeout(10000)"}
	from, err := sql.Open("sqlite", source.String())
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer from.Close()
	if _, err := from.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy the database to %s: %w", to, err)
	}
	return Sync(to, filepath.Dir(to))
}

// Sync writes files and folders through to the disk.
func Sync(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			f.Close()
			return fmt.Errorf("write %s to the disk: %w", path, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
