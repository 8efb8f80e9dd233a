package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// dialect is the only switch between the engines.
type dialect int

const (
	sqlite dialect = iota
	postgres
)

func (d dialect) String() string {
	if d == postgres {
		return "postgres"
	}
	return "sqlite"
}

// clock is the query for the database's time in Unix microseconds. SQLite's is
// exact to the millisecond.
func (d dialect) clock() string {
	if d == postgres {
		return "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	return "SELECT CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000"
}

// probe writes probeRows texts of at least probeRow bytes with one time. The server makes
// them, each of its own and none that can be packed: its log keeps the text of a statement
// that failed.
func (d dialect) probe() string {
	if d == postgres {
		return fmt.Sprintf("INSERT INTO form_keys (form_key, at) SELECT (SELECT string_agg(md5(random()::text || r || c), '') FROM generate_series(0, %d / 32) c), ?"+
			" FROM generate_series(1, %d) r", probeRow, probeRows)
	}
	return fmt.Sprintf("WITH RECURSIVE n (r) AS (SELECT 1 UNION ALL SELECT r + 1 FROM n WHERE r < %d)"+
		" INSERT INTO form_keys (form_key, at) SELECT hex(randomblob(%d / 2)), ? FROM n", probeRows, probeRow)
}

// hasTable is the query for whether there is a table of a name.
func (d dialect) hasTable() string {
	if d == postgres {
		return "SELECT to_regclass(?) IS NOT NULL"
	}
	return "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)"
}

// keyType is a number as a table's only key.
var keyType = regexp.MustCompile(`\bBIGINT(\s+PRIMARY KEY)`)

// schema is the text of a migration as the engine takes it. To SQLite only INTEGER
// PRIMARY KEY is the row's own number, of 64 bits all the same; any other type makes a
// second index that each insert keeps and each look-up goes through.
func (d dialect) schema(text string) string {
	if d == postgres {
		return text
	}
	return keyType.ReplaceAllString(text, "INTEGER$1")
}

// IsPostgres is for the few callers whose cost, not meaning, differs.
func (d *DB) IsPostgres() bool { return d.dialect == postgres }

// Engine names the database in logs and on pages: "sqlite" or "postgres".
func (d *DB) Engine() string { return d.dialect.String() }

// ForUpdate locks the selected rows on PostgreSQL. SQLite has one writer, and a
// syntax error for the clause. Correctness never rests on this lock: it saves
// the loser of a race a wasted transaction and gives locks one order.
func (d *DB) ForUpdate(q *bun.SelectQuery) *bun.SelectQuery {
	if d.dialect == postgres {
		return q.For("UPDATE")
	}
	return q
}

// ForUpdateText is ForUpdate as the end of a text.
func (d *DB) ForUpdateText() string {
	if d.dialect == postgres {
		return " FOR UPDATE"
	}
	return ""
}

// orFail says to SQLite that an INSERT or UPDATE which fails need not take back its own
// first rows: whoever writes by Writes takes back the whole transaction then. Otherwise
// the engine copies each page before a statement of several rows changes it.
func (d dialect) orFail(text string) string {
	if d == postgres {
		return text
	}
	verb, rest, _ := strings.Cut(text, " ")
	return verb + " OR FAIL " + rest
}

// SkipLocked passes over rows that another node is claiming, for speed only.
func (d *DB) SkipLocked(q *bun.SelectQuery) *bun.SelectQuery {
	if d.dialect == postgres {
		return q.For("UPDATE SKIP LOCKED")
	}
	return q
}

// Snapshot reads several statements as of one moment. SQLite's readers have a
// snapshot anyway.
func (d *DB) Snapshot(ctx context.Context, fn func(context.Context, bun.IDB) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if d.dialect == postgres {
		o.Isolation = sql.LevelRepeatableRead
	}
	return d.Read.RunInTx(ctx, o, func(ctx context.Context, tx bun.Tx) error { return fn(ctx, tx) })
}

// IsUnique says that a row of the same key exists already.
func IsUnique(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505"
	}
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlitelib.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// IsConflict says that the transaction lost against another one (deadlock,
// serialization, lock timeout, busy) and may simply be tried again.
func IsConflict(err error) bool {
	if errors.Is(err, ErrStale) {
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01", "55P03":
			return true
		}
		return false
	}
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		return lite.Code()&0xff == sqlitelib.SQLITE_BUSY
	}
	return false
}

// IsUnavailable says that the database could not be reached, left in the middle of the
// work, or takes no writes for now (a standby, a full disk). Of a commit that was
// under way this says nothing; see ErrCommitUnknown.
func IsUnavailable(err error) bool {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	var lite *sqlitedriver.Error
	switch {
	case errors.As(err, &connect), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF), IsReadOnly(err):
		return true
	case errors.As(err, &pg): // connections, want of memory, disk or connections, and ended by an operator
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P")
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CANTOPEN:
			return true
		}
		return false
	default: // pgx finds some connections dead before it sends anything
		return errors.As(err, &network) || pgconn.SafeToRetry(err)
	}
}

// ErrorText shortens a database error for people; it may be stored and shown.
func ErrorText(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}

// IsReadOnly says that the database takes no writes: a standby, a file without
// the right to write, a disk that was mounted read-only.
func IsReadOnly(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "25006"
	}
	var lite *sqlitedriver.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlitelib.SQLITE_READONLY
}

// errReadOnly says so where nothing was tried.
var errReadOnly = errors.New("the database takes no writes")

// Writable says whether the database takes writes, for readiness. Nothing is
// written, unless the program's own writes found no room (hasRoom).
func (d *DB) Writable(ctx context.Context) error {
	if err := d.hasRoom(ctx); err != nil {
		return err
	}
	return d.Tx(ctx, func(ctx context.Context, tx Tx) error {
		// To begin is enough on SQLite: it takes the lock for writing.
		var readOnly string
		query := "SELECT 'off'"
		if d.IsPostgres() {
			query = "SHOW transaction_read_only"
		}
		if err := tx.NewRaw(query).Scan(ctx, &readOnly); err != nil {
			return err
		}
		if readOnly != "off" {
			return errReadOnly
		}
		return nil
	})
}
