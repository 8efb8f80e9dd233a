package db

import (
	"context"
	"database/sql"
	"io/fs"
	"testing"
	"time"
)

// SharedWaiting returns how many parts wait for the next shared transaction.
func (d *DB) SharedWaiting() int {
	d.shared.mu.Lock()
	defer d.shared.mu.Unlock()
	return len(d.shared.waiting)
}

// LoseName releases the lock of the name, as a kill of the process does.
func LoseName(d *DB) { d.node.lock.close() }

// HasName reports whether the process has the lock of its name.
func HasName(d *DB) bool {
	d.node.lock.mu.Lock()
	defer d.node.lock.mu.Unlock()
	return d.node.lock.held
}

// BreakName ends the session with the lock, as a restart of PostgreSQL does.
func BreakName(t testing.TB, d *DB) {
	t.Helper()
	d.node.lock.mu.Lock()
	pid := d.node.lock.conn.PgConn().PID()
	d.node.lock.held = false
	d.node.lock.mu.Unlock()
	if _, err := d.NewRaw("SELECT pg_terminate_backend(?)", pid).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// StealName gives the name to another process as soon as the first one's session has ended,
// before the first one can take it again.
func StealName(t testing.TB, from, to *DB, files fs.FS) {
	t.Helper()
	from.node.lock.mu.Lock() // it cannot try
	defer from.node.lock.mu.Unlock()
	if _, err := to.NewRaw("SELECT pg_terminate_backend(?)", from.node.lock.conn.PgConn().PID()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := to.RegisterNode(t.Context(), files); err != nil {
		t.Fatal(err)
	}
}

// AddMonthsUntil creates the partitions that exist at a later time (Unix µs).
func AddMonthsUntil(ctx context.Context, d *DB, table string, at int64) error {
	return d.changeSchema(ctx, func(ctx context.Context, tx Tx) error {
		if err := d.addFirst(ctx, tx, table); err != nil {
			return err
		}
		return attachMonths(ctx, tx, table, IDAt(at))
	})
}

// HurryLocks makes a change of partitions give up soon.
func HurryLocks(t testing.TB) {
	patience, wait := lockPatience, firstLockWait
	t.Cleanup(func() { lockPatience, firstLockWait = patience, wait })
	lockPatience, firstLockWait = 3*time.Second, 10*time.Millisecond
}

// LiteReader opens a file of SQLite for queries that may take so long.
func LiteReader(file string, maxTime time.Duration) *sql.DB {
	return sql.OpenDB(connector{Connector: liteReader{liteFile{"file:" + file + "?mode=ro"}}, reads: true, maxTime: maxTime, traffic: &traffic{}})
}
