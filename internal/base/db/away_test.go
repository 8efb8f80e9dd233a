package db_test

import (
	"net"
	"net/url"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"

	"github.com/jackc/pgx/v5"
)

// A merchant whose request fails during a restart of the database should try again, not call
// its operator.
func TestAwayIsKnownFromAMistake(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "NOT SQL"); err == nil || db.IsUnavailable(err) {
			t.Errorf("a mistake: %v", err)
		}
		if !d.IsPostgres() {
			if _, err := d.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // no larger than it is
				t.Fatal(err)
			}
			_, err := d.ExecContext(t.Context(), "CREATE TABLE more AS SELECT hex(randomblob(100000)) AS x")
			if err == nil || !db.IsUnavailable(err) {
				t.Errorf("the disk is full: %v", err)
			}
			return
		}
		conn, err := pgx.Connect(t.Context(), dbtest.PostgresURL(t))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil || !db.IsUnavailable(err) {
			t.Errorf("a connection that is known to be dead: %v", err)
		}
		if _, err := d.ExecContext(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())"); !db.IsUnavailable(err) {
			t.Errorf("ended by the server: %v", err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		none := url.URL{Scheme: "postgres", Host: l.Addr().String(), User: url.User("x")}
		if _, err := db.Open(t.Context(), db.Options{URL: none.String()}); !db.IsUnavailable(err) {
			t.Errorf("no listener: %v", err)
		}
	})
}
