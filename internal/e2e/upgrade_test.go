package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/payment/paymenttest"
	"backstop/migrations"
)

// beforeAlone is the last migration of the programs that had a row for each fact and tables
// that were not partitioned.
const beforeAlone = "20261122000050_checks"

// TestKilledAtAnyStepOfTheUpgradeNothingIsLost has one database of an earlier version, and copies
// of it whose upgrades are killed and begun again: a full run at each step, CI at the first one and
// at each fortieth from a seeded one. Whatever the step,
// schema and rows are then those of an upgrade that was not killed. This is the one test here
// that accesses tables directly: no program creates such a database any more.
func TestKilledAtAnyStepOfTheUpgradeNothingIsLost(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			u := earlier(t, engine == "postgres")
			every, first := 40, 1+rand.New(rand.NewPCG(seed(t), 0)).IntN(40) // after the first step
			if full() {
				every, first = 1, 1
			}
			u.copy()
			u.run("migrate", "up")
			want := u.state()
			if len(want) < 40 {
				t.Fatalf("only %d parts of the database are compared", len(want))
			}
			var killed []int
			for step := 1; ; {
				u.copy()
				if !u.dies("upgrade:" + fmt.Sprint(step)) {
					break
				}
				u.run("migrate", "up")
				same(t, fmt.Sprintf("killed at step %d", step), u.state(), want)
				u.books()
				if killed = append(killed, step); step == 1 {
					step += first
				} else {
					step += every
				}
			}
			if len(killed) < 4 || killed[0] != 1 {
				t.Fatalf("killed at the steps %v: they are not where they should be", killed)
			}
			t.Logf("killed at %d steps, the last one is %d", len(killed), killed[len(killed)-1])

			// The server upgrades as well, and goes on with what was open.
			u.copy()
			u.execute("UPDATE deliveries SET next_at = 1 WHERE next_at IS NOT NULL")
			u.launch("upgrade:" + fmt.Sprint(killed[len(killed)/2]))
			u.died()
			u.start("")
			u.wantAccepted(callbackForm("sp-main", u.open, "T-open", 1999))
			u.wantAccepted(callbackForm("sp-main", u.paid, "T"+u.paid, 1999)) // a repeat
			for _, no := range []string{u.open, u.waiting} {
				u.wantOrder(no, againWithin, map[string]string{"status": "paid", "notify_status": "delivered"})
			}
			if n := len(u.notifications(u.paid)); n != 1 {
				t.Errorf("a merchant was notified %d times of one payment, by two versions", n)
			}
			u.books()
			u.terminate()

			// The negative control: what a migrator leaves that commits each statement is seen.
			u.copy()
			u.execute(firstStatement(t, "20261122000070_record.alone.tx.up.sql"))
			if _, err := u.command("migrate", "up"); err == nil && len(differences(u.state(), want)) == 0 {
				t.Error("an upgrade that was interrupted between two statements counts as complete")
			}
		})
	}
}

// upgraded is an installation whose database can be reset to that of an earlier version.
type upgraded struct {
	*world
	admin               *sql.DB // PostgreSQL; nil = SQLite
	copies              int
	file                []byte
	open, paid, waiting string // orders
}

// earlier makes a database as an earlier version left it: orders that are open, paid,
// failed and disputed, and notifications that are delivered, refused and waiting.
func earlier(t *testing.T, postgres bool) *upgraded {
	t.Helper()
	u := &upgraded{}
	o := options{postgres: postgres}
	if postgres {
		server := dbtest.OwnPostgres(t)
		var err error
		if u.admin, err = sql.Open("pgx", server); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { u.admin.Close() })
		u.administer(t, "CREATE DATABASE earlier")
		o.database = named(t, server, "earlier")
	}
	u.world = newWorld(t, o)
	u.start("")
	long := requestBody{"expires_in": 86400}
	for i := range 8 {
		u.paid = u.create(fmt.Sprintf("paid-%d", i), long)
		u.wantAccepted(callbackForm("sp-main", u.paid, "T"+u.paid, 1999))
		u.wantAccepted(callbackForm("sp-main", u.paid, "T"+u.paid, 1999))
	}
	u.wantOrder(u.paid, againWithin, map[string]string{"notify_status": "delivered"})
	u.wantAccepted(callbackForm("sp-main", u.create("less", long), "T-less", 1))
	short := u.create("short", requestBody{"expires_in": 1})
	u.wantOrder(short, againWithin, map[string]string{"status": "closed", "notify_status": "delivered"})
	u.open = u.create("open", long)
	u.merchant.Behave(fakemerchant.Answer(500, "not now"))
	u.waiting = u.create("waiting", long)
	u.wantAccepted(callbackForm("sp-main", u.waiting, "T-waiting", 1999))
	u.wantOrder(u.waiting, againWithin, map[string]string{"status": "paid", "notify_status": "retrying"})
	u.terminate()
	u.merchant.Behave(fakemerchant.Answer(200, "ok"))
	u.asBefore()
	return u
}

// asBefore rewrites rows, schema and tables into those of an earlier version.
func (u *upgraded) asBefore() {
	t := u.t
	d, err := db.Open(t.Context(), db.Options{URL: u.database, Dir: u.folder, Pool: 4})
	if err != nil {
		t.Fatal(err)
	}
	paymenttest.AsBefore(t, d)
	for {
		newest, err := d.NewestMigration(t.Context(), migrations.Files)
		if err != nil {
			t.Fatal(err)
		}
		if newest.Name == beforeAlone {
			break
		}
		if _, err := d.Rollback(t.Context(), migrations.Files); err != nil {
			t.Fatal(err)
		}
	}
	statements := []string{ // nothing becomes due while this test runs
		fmt.Sprintf("UPDATE deliveries SET next_at = %d WHERE next_at IS NOT NULL", d.Now()+time.Hour.Microseconds()),
	}
	for table := range strings.FieldsSeq("callbacks notify_attempts order_history") {
		statements = append(statements, u.whole(d, table)...)
	}
	for _, s := range statements {
		if _, err := d.NewRaw(s).Exec(t.Context()); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := d.Close(); err != nil { // which moves SQLite's log into the file
		t.Fatal(err)
	}
	if u.admin == nil {
		if u.file, err = os.ReadFile(filepath.Join(u.folder, db.File)); err != nil {
			t.Fatal(err)
		}
	}
}

// whole returns the statements that put a table's first partition in its place again.
func (u *upgraded) whole(d *db.DB, table string) []string {
	t := u.t
	parts, err := d.Partitions(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) == 0 {
		return nil
	}
	first := parts[0].Name
	suffix := strings.TrimPrefix(first, table)
	statements := []string{
		fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", table, first),
		"DROP TABLE " + table, fmt.Sprintf("ALTER TABLE %s RENAME TO %s", first, table),
	}
	var indexes []string
	err = d.NewRaw("SELECT indexname FROM pg_indexes WHERE tablename = ? AND indexname LIKE ?", first, "%"+suffix).Scan(t.Context(),
		&indexes)
	if err != nil || len(indexes) == 0 {
		t.Fatalf("indexes %v of %s: %v", indexes, first, err)
	}
	for _, name := range indexes { // of a constraint, too
		statements = append(statements, fmt.Sprintf("ALTER INDEX %s RENAME TO %s", name, strings.TrimSuffix(name, suffix)))
	}
	return statements
}

// copy gives the installation a fresh copy of the database.
func (u *upgraded) copy() {
	t := u.t
	t.Helper()
	if u.admin == nil {
		for _, more := range []string{"-wal", "-shm"} {
			_ = os.Remove(filepath.Join(u.folder, db.File+more))
		}
		if err := os.WriteFile(filepath.Join(u.folder, db.File), u.file, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if u.copies > 0 {
		u.administer(t, fmt.Sprintf("DROP DATABASE copy_%d WITH (FORCE)", u.copies))
	}
	u.copies++
	name := fmt.Sprintf("copy_%d", u.copies)
	u.administer(t, "CREATE DATABASE "+name+" TEMPLATE earlier STRATEGY file_copy")
	u.database = named(t, u.database, name)
}

func (u *upgraded) administer(t *testing.T, statement string) {
	t.Helper()
	if _, err := u.admin.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// named is the URL of another database of the server.
func named(t *testing.T, server, database string) string {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + database
	return at.String()
}

// dies upgrades with a point armed, and reports whether that killed it.
func (u *upgraded) dies(point string) bool {
	t := u.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "migrate", "up")
	cmd.Env, cmd.Dir = u.environ("FAILPOINT="+point), u.folder
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ctx.Err() != nil || !errors.As(err, &exit) || !ok ||
		status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s: the upgrade ended by itself: %v\n%s", point, err, out)
	}
	return true
}

func (u *upgraded) execute(statement string) {
	t := u.t
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: u.database, Dir: u.folder, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.NewRaw(statement).Exec(t.Context()); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// firstStatement is that of a migration.
func firstStatement(t *testing.T, file string) string {
	t.Helper()
	text, err := migrations.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(s string) bool { return strings.HasPrefix(s, "--") })
	first, _, _ := strings.Cut(strings.Join(lines, "\n"), ";")
	return first
}

// state is the database by part: each table's rows, in their order as text, and what the
// catalogue has of it. Moments of migrations differ, and processes come and go.
func (u *upgraded) state() map[string][]string {
	t := u.t
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: u.database, Dir: u.folder, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	catalogue, tables := "SELECT type, name, tbl_name, sql FROM sqlite_master",
		"SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
	if u.admin != nil {
		catalogue = "SELECT relname::text, relkind::text, coalesce(reloptions::text, ''), coalesce(pg_get_expr(relpartbound, oid), ''), CASE WHEN relkind IN ('i', 'I') THEN pg_get_indexdef(oid) WHEN relkind = 'v' THEN pg_get_viewdef(oid) ELSE '' END" +
			" FROM pg_class WHERE relnamespace = 'public'::regnamespace" +
			" UNION ALL SELECT conrelid::regclass::text, conname::text, convalidated::text, pg_get_constraintdef(oid), '' FROM pg_constraint WHERE connamespace = 'public'::regnamespace" +
			" UNION ALL SELECT table_name::text, column_name::text, data_type::text, coalesce(column_default, ''), is_nullable::text FROM information_schema.columns WHERE table_schema = 'public'" +
			" UNION ALL SELECT tgrelid::regclass::text, tgname::text, pg_get_triggerdef(oid), '', '' FROM pg_trigger WHERE NOT tgisinternal"
		tables = "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
	}
	state := map[string][]string{"catalogue": u.rows(d, catalogue)}
	for _, name := range u.rows(d, tables) {
		columns := "*"
		switch name {
		case "schema_migrations":
			columns = "name"
		case "nodes":
			continue
		}
		state[name] = u.rows(d, "SELECT "+columns+" FROM "+name)
	}
	return state
}

func (u *upgraded) rows(d *db.DB, query string) (all []string) {
	t := u.t
	t.Helper()
	found, err := d.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	for found.Next() {
		if err := found.Scan(to...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if raw, ok := v.([]byte); ok {
				v = string(raw)
			}
			texts[i] = fmt.Sprint(v)
		}
		all = append(all, strings.Join(texts, " | "))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// differences lists what two states have not in common.
func differences(got, want map[string][]string) (all []string) {
	for _, pair := range []struct {
		what       string
		from, less map[string][]string
	}{{"missing", want, got}, {"too many", got, want}} {
		for part, rows := range pair.from {
			for _, row := range rows {
				if !slices.Contains(pair.less[part], row) {
					all = append(all, pair.what+" in "+part+": "+row)
				}
			}
			if len(pair.less[part]) != len(rows) {
				all = append(all, fmt.Sprintf("%s in %s: %d rows, %d", pair.what, part, len(rows), len(pair.less[part])))
			}
		}
	}
	return all
}

func same(t *testing.T, when string, got, want map[string][]string) {
	t.Helper()
	for i, d := range differences(got, want) {
		if i == 10 {
			break
		}
		t.Errorf("%s: %s", when, d)
	}
}
