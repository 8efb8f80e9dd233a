package db_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/migrations"
)

// A database in another encoding refuses names and subjects, or stores invalid text.
func TestADatabaseInAnotherEncodingIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	address := dbtest.PostgresURL(t)
	admin := dbtest.Open(t, db.Options{URL: address})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("search_path")
	u.RawQuery = "sslmode=disable"
	for encoding, refused := range map[string]bool{"LATIN1": true, "SQL_ASCII": true} {
		name := schema + "_" + strings.ToLower(encoding)
		if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name+" ENCODING '"+encoding+
			"' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name + " WITH (FORCE)") })
		u.Path = "/" + name
		d, err := db.Open(t.Context(), db.Options{URL: u.String()})
		if err == nil {
			d.Close()
		}
		if (err != nil) != refused || refused && (!strings.Contains(err.Error(), encoding) || !strings.Contains(err.Error(), "UTF8") ||
			strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", encoding, err)
		}
	}
}

// Behind a pooler that assigns connections by transaction, locks and prepared statements would
// belong to other clients.
func TestAPoolerOfTransactionsIsRefused(t *testing.T) {
	t.Parallel()
	address := asRole(t, dbtest.PostgresURL(t))
	for _, c := range []struct {
		name    string
		mode    string
		setting string
		refused bool
	}{
		{"transactions", "transaction", "", true},
		{"transactions in turns", "transaction", "server_round_robin = 1", true},
		{"transactions on one connection", "transaction", "default_pool_size = 1", true},
		{"statements", "statement", "", true},
		{"sessions", "session", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pooled := bouncer(t, address, c.mode, c.setting)
			warm(t, pooled)
			begin := time.Now()
			d, err := db.Open(t.Context(), db.Options{URL: pooled, Pool: 4})
			if c.refused {
				if err == nil {
					d.Close()
					t.Fatal("it is not found")
				}
				if text := err.Error(); !strings.Contains(text, "pool_mode = session") || strings.Contains(text, "\n") ||
					strings.Contains(text, "127.0.0.1") {
					t.Errorf("it is %q", text)
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			settings := map[string]string{
				"enable_seqscan": "off", "lock_timeout": "500ms",
				"default_transaction_isolation": "read committed", "synchronous_commit": "on",
			}
			for name, want := range settings {
				var is string
				if err := d.NewRaw("SHOW "+name).Scan(t.Context(), &is); err != nil || is != want {
					t.Errorf("%s is %s, %v", name, is, err)
				}
			}
			if _, err := d.Migrate(t.Context(), migrations.Files); err != nil {
				t.Error(err)
			}
			d.Read.DB.SetMaxOpenConns(1)
			for _, text := range []string{"SELECT set_config('default_transaction_read_only', 'off', false)", "RESET ALL"} {
				if _, err := d.Read.ExecContext(t.Context(), text); err != nil {
					t.Error(err)
				}
				if _, err := d.Read.ExecContext(t.Context(), "DELETE FROM settings"); !db.IsReadOnly(err) {
					t.Errorf("a reader after %s: %v", text, err)
				}
			}
			if _, err := d.RegisterNode(t.Context(), migrations.Files); err != nil {
				t.Error(err)
			}
			err = d.AsyncCommitTx(t.Context(), func(ctx context.Context, q db.Session) error {
				var is string
				if err := q.NewRaw("SHOW synchronous_commit").Scan(ctx, &is); err != nil || is != "off" {
					t.Errorf("async commit: synchronous_commit is %s, %v", is, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// warm makes two clients query at once, so that the pooler has two connections to assign.
func warm(t *testing.T, address string) {
	t.Helper()
	pool, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := pool.ExecContext(t.Context(), "SELECT pg_sleep(0.3)"); err != nil {
				t.Errorf("warm: %v", err)
			}
		})
	}
	both.Wait()
}

// asRole creates a role with the schema of the URL, since a pooler accepts no search_path from a
// client, and returns the URL with that role.
func asRole(t *testing.T, address string) string {
	t.Helper()
	admin := dbtest.Open(t, db.Options{URL: address})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("search_path")
	role := schema + "_pooled"
	for _, s := range []string{"CREATE ROLE " + role + " SUPERUSER LOGIN", "ALTER ROLE " + role + " SET search_path = " + schema} {
		if _, err := admin.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP ROLE " + role) })
	u.User = url.User(role)
	return u.String()
}

// bouncer runs PgBouncer in front of a PostgreSQL, with a pool mode and further settings, and
// returns the URL through it.
func bouncer(t *testing.T, address, mode, settings string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	_ = l.Close()
	folder, err := os.MkdirTemp("", "pgbouncer-") // one that other accounts may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Sprintf(
		"[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = %s\n%s\n",
		u.Hostname(), u.Port(), port, mode, settings)
	// With auth_type any, every client connects as the user in the database's entry.
	text = strings.Replace(text, "\n[pgbouncer]", " user="+u.User.Username()+"\n[pgbouncer]", 1)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // Debian's path, which is rarely in PATH
	}
	cmd := exec.Command(program, config)
	cmd.Stdout, cmd.Stderr = &output, &output
	if os.Getuid() == 0 { // it refuses to run as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("run pgbouncer (Debian: apt-get install pgbouncer): %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	waittest.Until(t, "pgbouncer listens", func() bool {
		c, err := net.Dial("tcp", at)
		return err == nil && c.Close() == nil
	})
	u.Host = at
	q := u.Query()
	q.Del("search_path")
	u.RawQuery = q.Encode()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pgbouncer prints:\n%s", output.String())
		}
	})
	return u.String()
}
