package db

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/uptrace/bun"
)

// IsPostgres reports whether the database is PostgreSQL. It is for the few callers whose cost,
// not meaning, differs.
func (d *DB) IsPostgres() bool { return d.postgres }

// Engine names the database in logs and on pages: "sqlite" or "postgres".
func (d *DB) Engine() string {
	if d.postgres {
		return "postgres"
	}
	return "sqlite"
}

// probeQuery returns a statement that writes probeRows rows of at least probeRow bytes, all
// with the same time. The server generates the texts, since it logs the statement if it fails.
// They are all different and cannot be compressed.
func (d *DB) probeQuery() string {
	if d.postgres {
		return fmt.Sprintf(
			"INSERT INTO form_keys (form_key, at) SELECT (SELECT string_agg(md5(random()::text || r || c), '') FROM generate_series(0, %d / 32) c), ?"+
				" FROM generate_series(1, %d) r", probeRow, probeRows)
	}
	return fmt.Sprintf("WITH RECURSIVE n (r) AS (SELECT 1 UNION ALL SELECT r + 1 FROM n WHERE r < %d)"+
		" INSERT INTO form_keys (form_key, at) SELECT hex(randomblob(%d / 2)), ? FROM n", probeRows, probeRow)
}

// tableQuery returns the query for whether a table exists.
func (d *DB) tableQuery() string {
	if d.postgres {
		return "SELECT to_regclass(?) IS NOT NULL"
	}
	return "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)"
}

// keyType matches a number as a table's only key.
var keyType = regexp.MustCompile(`\bBIGINT(\s+PRIMARY KEY)`)

// schemaText adapts the text of a migration to the engine. In SQLite only INTEGER PRIMARY KEY
// is the row's own number, which also has 64 bits; any other type makes a second index that
// each insert must maintain and each look-up must go through.
func (d *DB) schemaText(text string) string {
	if d.postgres {
		return text
	}
	return keyType.ReplaceAllString(text, "INTEGER$1")
}

// orFail makes an INSERT or UPDATE that fails on SQLite keep the rows that it has written so
// far; callers of Writes then roll the whole transaction back. Without OR FAIL, the engine
// copies each page before a statement of several rows changes it.
func (d *DB) orFail(text string) string {
	if d.postgres {
		return text
	}
	verb, rest, _ := strings.Cut(text, " ")
	return verb + " OR FAIL " + rest
}

// ForUpdate locks the selected rows on PostgreSQL. SQLite has one writer and does not parse
// the clause. Correctness never depends on this lock: it saves the loser of a race a wasted
// transaction, and makes transactions lock rows in the same order.
func (d *DB) ForUpdate(q *bun.SelectQuery) *bun.SelectQuery {
	if d.postgres {
		return q.For("UPDATE")
	}
	return q
}

// ForUpdateText returns the clause of ForUpdate, to append to a query's text.
func (d *DB) ForUpdateText() string {
	if d.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// SkipLocked skips rows that another node is claiming, for speed only.
func (d *DB) SkipLocked(q *bun.SelectQuery) *bun.SelectQuery {
	if d.postgres {
		return q.For("UPDATE SKIP LOCKED")
	}
	return q
}

// Snapshot runs several reads on a single snapshot of the database. SQLite's readers always
// have one.
func (d *DB) Snapshot(ctx context.Context, fn func(context.Context, bun.IDB) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if d.postgres {
		o.Isolation = sql.LevelRepeatableRead
	}
	return d.Read.RunInTx(ctx, o, func(ctx context.Context, tx bun.Tx) error { return fn(ctx, tx) })
}
