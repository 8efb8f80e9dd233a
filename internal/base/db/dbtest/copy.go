package dbtest

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/servertest"
)

// migratedFile is the content of a migrated SQLite database that no node has joined.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "backstop-migrated-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := migrate(db.Options{Dir: dir}); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, db.File)) // closing the database moved its log into the file
})

// templateSchema is the schema of the tables: not "public", since an installation may use
// another one.
const templateSchema = "tests"

// clone copies the migrated database of the server for this test, and returns its URL.
func clone(t testing.TB) string {
	t.Helper()
	servertest.Need(t)
	from, err := template()
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	name := newName()
	// Copying files takes a third of the time of the default, which goes through the log.
	base := owned(t, "CREATE DATABASE "+name+" TEMPLATE "+from+" STRATEGY file_copy", "DROP DATABASE "+name+" WITH (FORCE)")
	return with(base, name, templateSchema)
}

// template creates the database that clone copies and returns its name. There is one for all
// test processes of a go test, which is their parent: another go test may have another schema.
// It ends with the server.
var template = sync.OnceValues(func() (name string, err error) {
	base, err := server()
	if err != nil {
		return "", err
	}
	lock, err := lockHome(privateHome())
	if err != nil {
		return "", err
	}
	defer lock.Close()
	admin, err := sql.Open("pgx", base)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	name = fmt.Sprintf("template_%d", os.Getppid())
	var there bool
	if err := admin.QueryRow("SELECT count(*) > 0 FROM pg_database WHERE datname = $1", name).Scan(&there); err != nil || there {
		return name, err
	}
	unfinished := newName()
	url := with(base, unfinished, templateSchema)
	for _, step := range []func() error{
		func() error { _, err := admin.Exec("CREATE DATABASE " + unfinished); return err },
		func() error { return execOn(url, "CREATE SCHEMA "+templateSchema) },
		func() error { return migrate(db.Options{URL: url}) },
		func() error { _, err := admin.Exec("ALTER DATABASE " + unfinished + " RENAME TO " + name); return err },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return name, nil
})

func execOn(url, statement string) error {
	d, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Exec(statement)
	return err
}
