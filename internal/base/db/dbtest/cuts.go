package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/servertest"

	"github.com/uptrace/bun"
)

// Cuts loses answers to COMMITs, and to writes that commit by themselves. It breaks connections to PostgreSQL before the server has received
// it, after it, or so that the server receives it later; on SQLite the commit is made or rolled
// back, and its caller gets an error in both cases.
type Cuts struct {
	mu    sync.Mutex
	rng   *rand.Rand
	every int
	made  int
}

// CutPostgres returns a URL of the database behind Cuts, which do nothing yet.
func CutPostgres(t testing.TB, to string, seed uint64) (url string, c *Cuts) {
	t.Helper()
	c = &Cuts{rng: rand.New(rand.NewPCG(seed, 3))}
	return through(t, to, func() func(statement) cut {
		begun := false
		return func(s statement) cut {
			switch word, _, _ := strings.Cut(strings.ToLower(s.text), " "); word {
			case "begin":
				begun = true
			case "commit", "rollback":
				begun = false
			case "with":
				if !begun && strings.HasPrefix(s.text, "WITH w0 AS (") { // it commits by itself
					return c.see(statement{text: "commit"})
				}
			}
			return c.see(s)
		}
	}), c
}

// EachCut is Each for tests that lose answers to commits.
func EachCut(t *testing.T, seed uint64, test func(t *testing.T, d *db.DB, c *Cuts)) {
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "sqlite" {
				d := SQLite(t)
				test(t, d, cutSQLite(t, d, seed))
				return
			}
			servertest.Need(t)
			url, c := CutPostgres(t, PostgresMigratedURL(t), seed)
			test(t, joined(t, db.Options{URL: url}), c)
		})
	}
}

// cutSQLite puts Cuts before the only writer of a file.
func cutSQLite(t *testing.T, d *db.DB, seed uint64) *Cuts {
	t.Helper()
	l := &cutLite{writer: d.DB.DB, cuts: &Cuts{rng: rand.New(rand.NewPCG(seed, 3))}}
	through := sql.OpenDB(l)
	through.SetMaxOpenConns(1)
	d.DB = bun.NewDB(through, d.Dialect())
	t.Cleanup(func() { _ = through.Close() })
	return l.cuts
}

// cutLite connects to the writer of a file by the connection that its pool has.
type cutLite struct {
	writer *sql.DB
	cuts   *Cuts
}

func (l *cutLite) Driver() driver.Driver { return l.writer.Driver() }

func (l *cutLite) Connect(ctx context.Context) (driver.Conn, error) {
	held, err := l.writer.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &liteConn{held: held, cuts: l.cuts}
	err = held.Raw(func(raw any) error {
		var ok bool
		if c.lite, ok = raw.(lite); !ok {
			return errors.New("the driver's connection cannot be wrapped")
		}
		return nil
	})
	return c, err
}

// lite is what database/sql uses of a connection of SQLite's driver.
type lite interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type liteConn struct {
	lite
	held *sql.Conn
	cuts *Cuts
}

func (c *liteConn) Close() error { return c.held.Close() }

func (c *liteConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.lite.BeginTx(ctx, o)
	return liteTx{tx, c.cuts}, err
}

type liteTx struct {
	driver.Tx
	cuts *Cuts
}

func (t liteTx) Commit() error {
	switch t.cuts.see(statement{text: "commit"}) {
	case pass:
		return t.Tx.Commit()
	case cutBefore:
		_ = t.Rollback()
	default:
		if err := t.Tx.Commit(); err != nil {
			return err
		}
	}
	return errCut
}

// Every has one COMMIT in n cut, at random; 0 = none.
func (c *Cuts) Every(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.every = n
}

// Made returns the number of cuts.
func (c *Cuts) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

func (c *Cuts) see(s statement) cut {
	if !strings.EqualFold(s.text, "commit") {
		return pass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.every == 0 || c.rng.IntN(c.every) > 0 {
		return pass
	}
	c.made++
	return []cut{cutBefore, cutAfter, cutDelayed}[c.rng.IntN(3)]
}

// StopPostgres stops the processes of a server of OwnPostgres by SIGSTOP until resume: it accepts
// connections and answers nothing.
func StopPostgres(t testing.TB, url string) (resume func()) {
	t.Helper()
	d, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var own int
	if err := d.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	parent, err := parentOf(own)
	if err != nil {
		t.Fatal(err)
	}
	stopped := []int{parent} // first, so that it starts no others
	_ = syscall.Kill(parent, syscall.SIGSTOP)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := parentOf(pid); err == nil && p == parent {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			stopped = append(stopped, pid)
		}
	}
	resume = sync.OnceFunc(func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	t.Cleanup(resume)
	return resume
}

// parentOf reads the parent of a process (proc(5), stat).
func parentOf(pid int) (parent int, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	var state string
	_, err = fmt.Sscan(rest, &state, &parent)
	return parent, err
}
