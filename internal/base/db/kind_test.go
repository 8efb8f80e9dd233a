package db_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// stranger answers like a PostgreSQL with an untrusted certificate.
func stranger(t *testing.T) (address string) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // has such a certificate
	web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil { // "may I have TLS?"
				_, _ = conn.Write([]byte("S"))
				_ = tls.Server(conn, web.TLS).Handshake()
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// /readyz needs no login: its text says what is wrong, but contains neither the database's
// address nor the user.
func TestTheKindOfTroubleTellsNoAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := l.Addr().String()
	_ = l.Close()
	with := func(change func(*url.URL)) string {
		u, err := url.Parse(dbtest.PostgresURL(t))
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	open := func(o db.Options) error {
		d, err := db.Open(t.Context(), o)
		if err == nil {
			d.Close()
		}
		return err
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	pg := dbtest.Open(t, db.Options{URL: dbtest.PostgresMigratedURL(t)})
	late := func() error { _, err := pg.ExecContext(short, "SELECT pg_sleep(5)"); return err }
	ended := func() error {
		_, err := pg.ExecContext(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	}
	mistake := func() error { _, err := pg.ExecContext(t.Context(), "SELECT hidden"); return err }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no listener": {open(db.Options{URL: "postgres://hidden:hidden@" + away + "/hidden?sslmode=disable"}), "cannot be reached"},
		"unknown user": {
			open(db.Options{URL: with(func(u *url.URL) { u.User = url.UserPassword("hidden", "hidden") })}),
			"refuses the user",
		},
		"unknown database":   {open(db.Options{URL: with(func(u *url.URL) { u.Path = "/hidden" })}), "no database with this name"},
		"in time":            {late(), "in time"},
		"ended by its owner": {ended(), "starting or stopping"},
		"a mistake":          {mistake(), "see the log"},
		"a stranger":         {open(db.Options{URL: "postgres://hidden@" + stranger(t) + "/hidden?sslmode=verify-full"}), "is not trusted"},
		"no file":            {open(db.Options{Dir: filepath.Join(file, "hidden")}), "cannot be opened"},
	} {
		if c.err == nil {
			t.Errorf("%s: nothing is wrong", name)
			continue
		}
		kind := db.Kind(c.err)
		if !strings.Contains(kind, c.want) {
			t.Errorf("%s: %v is shown as %q, want %q", name, c.err, kind, c.want)
		}
		for _, secret := range []string{"hidden", "127.0.0.1", away, "postgres", file} {
			if strings.Contains(kind, secret) {
				t.Errorf("%s: %q shows %q", name, kind, secret)
			}
		}
	}
}
