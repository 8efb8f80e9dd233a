package db

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"sync"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
)

// Prepared asks a question of the hot path, whose text is the same for any values
// (bulk.Bind) and stays prepared. It goes behind bun, which would write the values into
// the text.
func (d *DB) Prepared(ctx context.Context, dest any, text string, args ...any) error {
	return autocommit{d.DB, d}.Prepared(ctx, dest, text, args...)
}

// preparer is where a prepared question is asked.
type preparer struct {
	pool *sql.DB
	tx   *sql.Tx // nil outside of a transaction
}

func (d *DB) prepared(ctx context.Context, on preparer, dest any, text string, args []any) error {
	text, values := bulk.Bind(d.DB, text, args)
	rows, err := d.query(ctx, on, text, values)
	if err != nil {
		return err
	}
	defer rows.Close()
	return d.ScanRows(ctx, rows, dest)
}

func (d *DB) query(ctx context.Context, on preparer, text string, values []any) (*sql.Rows, error) {
	if d.IsPostgres() {
		values = append([]any{pgx.QueryExecModeCacheStatement}, values...)
	}
	s := d.statement(on.pool, text)
	switch {
	case on.tx != nil && s != nil:
		return on.tx.StmtContext(ctx, s).QueryContext(ctx, values...)
	case on.tx != nil:
		return on.tx.QueryContext(ctx, text, values...)
	case s != nil:
		return s.QueryContext(ctx, values...)
	default:
		return on.pool.QueryContext(ctx, text, values...)
	}
}

// Columns are those of a model, for the text of a question. A prepared one must name
// them: "*" would fail when a newer program adds one.
func (d *DB) Columns(model any) string {
	var names []string
	for _, f := range d.Table(reflect.TypeOf(model).Elem()).Fields {
		names = append(names, string(f.SQLName))
	}
	return strings.Join(names, ", ")
}

// statements are those that SQLite has prepared; pgx keeps its own. An engine inside
// of the process has no round trips to spare, but to read a text costs it more than
// to carry it out.
type statements struct {
	mu   sync.Mutex
	list map[statementKey]*sql.Stmt // nil while it is being prepared
}

type statementKey struct {
	pool *sql.DB
	text string
}

// Statements are the texts that SQLite keeps prepared: the hot path, for those who
// want to see how it is planned.
func (d *DB) Statements() []string {
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	var texts []string
	for key := range d.statements.list {
		texts = append(texts, key.text)
	}
	return texts
}

// statement is the prepared text, nil where there is none yet. It is prepared
// beside: the connection that would do it is the one that asks.
func (d *DB) statement(pool *sql.DB, text string) *sql.Stmt {
	if d.IsPostgres() {
		return nil
	}
	key := statementKey{pool, text}
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	s, asked := d.statements.list[key]
	if !asked {
		d.statements.list[key] = nil
		go d.prepare(key)
	}
	return s
}

func (d *DB) prepare(key statementKey) {
	ctx, cancel := context.WithTimeout(context.Background(), txTimeout)
	defer cancel()
	s, err := key.pool.PrepareContext(ctx, key.text)
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	if err != nil {
		delete(d.statements.list, key) // the next one asks again
		return
	}
	d.statements.list[key] = s
}

// execPrepared carries out a text that stays prepared.
func (tx Tx) execPrepared(ctx context.Context, text string, values ...any) (sql.Result, error) {
	if s := tx.db.statement(tx.db.DB.DB, text); s != nil {
		return tx.Tx.Tx.StmtContext(ctx, s).ExecContext(ctx, values...)
	}
	return tx.Tx.Tx.ExecContext(ctx, text, values...)
}
