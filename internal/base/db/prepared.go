package db

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// Prepared runs a query of the hot path, whose text is the same for any values (bulk.Bind) and
// stays prepared. It bypasses bun, which would write the values into the text.
func (d *DB) Prepared(ctx context.Context, dest any, text string, args ...any) error {
	return d.prepared(ctx, d.DB, nil, dest, text, args)
}

// prepared runs a query in tx, or on the pool if tx is nil.
func (d *DB) prepared(ctx context.Context, pool *bun.DB, tx *sql.Tx, dest any, text string, args []any) error {
	text, values := bulk.Bind(d.DB, text, args)
	rows, err := d.query(ctx, pool, tx, text, values)
	if err != nil {
		return err
	}
	defer rows.Close()
	return d.ScanRows(ctx, rows, dest)
}

func (d *DB) query(ctx context.Context, pool *bun.DB, tx *sql.Tx, text string, values []any) (*sql.Rows, error) {
	if d.postgres {
		values = append([]any{pgx.QueryExecModeCacheStatement}, values...)
	}
	s := d.statement(pool.DB, text)
	switch {
	case tx != nil && s != nil:
		return tx.StmtContext(ctx, s).QueryContext(ctx, values...)
	case tx != nil:
		return tx.QueryContext(ctx, text, values...)
	case s != nil:
		return s.QueryContext(ctx, values...)
	default:
		return pool.DB.QueryContext(ctx, text, values...)
	}
}

// scanAll reads a result of pgx into dest, a pointer to a slice of rows of a table, or of values, as
// bun's ScanRows does with one of database/sql.
func (d *DB) scanAll(found pgx.Rows, dest any) error {
	list := reflect.ValueOf(dest).Elem()
	kind := list.Type().Elem()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	add := func(row reflect.Value) {
		if list.Type().Elem().Kind() != reflect.Pointer {
			row = row.Elem()
		}
		list.Set(reflect.Append(list, row))
	}
	if kind.Kind() != reflect.Struct {
		return eachRow(found, func(r Row) error {
			value := reflect.New(kind)
			defer func() { add(value) }()
			return r.Scan(value.Interface())
		})
	}
	table := d.Table(kind)
	var fields []*schema.Field
	for _, column := range found.FieldDescriptions() {
		f := table.LookupField(column.Name)
		if f == nil {
			return fmt.Errorf("%s has no column %s", kind, column.Name)
		}
		fields = append(fields, f)
	}
	return eachRow(found, func(r Row) error {
		row := reflect.New(kind)
		into, later := make([]any, len(fields)), make([]func() error, 0, len(fields))
		for i, f := range fields {
			v := f.Value(row.Elem())
			switch kind := f.IndirectType.Kind(); {
			case f.NullZero:
				value := reflect.New(reflect.PointerTo(v.Type()))
				into[i] = value.Interface()
				later = append(later, func() error {
					if p := value.Elem(); !p.IsNil() {
						v.Set(p.Elem())
					}
					return nil
				})
			case kind == reflect.Struct || kind == reflect.Map: // JSON, which bun reads
				var text *string
				into[i] = &text
				later = append(later, func() error {
					if text == nil {
						return nil
					}
					return f.ScanValue(row.Elem(), []byte(*text))
				})
			default:
				into[i] = v.Addr().Interface()
			}
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		for _, set := range later {
			if err := set(); err != nil {
				return err
			}
		}
		add(row)
		return nil
	})
}

// Columns returns the columns of a model, for the text of a query. A prepared query must list
// them: "*" would fail when a newer program adds one.
func (d *DB) Columns(model any) string {
	var names []string
	for _, f := range d.Table(reflect.TypeOf(model).Elem()).Fields {
		names = append(names, string(f.SQLName))
	}
	return strings.Join(names, ", ")
}

// statements are the prepared statements of SQLite; pgx keeps its own. An engine inside the
// process has no round trips to save, but parsing a statement costs more than running it.
type statements struct {
	mu   sync.Mutex
	list map[statementKey]*sql.Stmt // nil while it is being prepared
}

type statementKey struct {
	pool *sql.DB
	text string
}

// Statements returns the texts that SQLite keeps prepared, which are those of the hot path,
// for tests of query plans.
func (d *DB) Statements() []string {
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	var texts []string
	for key := range d.statements.list {
		texts = append(texts, key.text)
	}
	return texts
}

// statement returns the prepared statement, or nil if there is none yet. It is prepared in the
// background: the only writing connection is in use by the caller.
func (d *DB) statement(pool *sql.DB, text string) *sql.Stmt {
	if d.postgres {
		return nil
	}
	key := statementKey{pool, text}
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	s, known := d.statements.list[key]
	if !known {
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
		delete(d.statements.list, key) // the next call tries again
		return
	}
	d.statements.list[key] = s
}

// execPrepared runs a statement that stays prepared.
func (tx Tx) execPrepared(ctx context.Context, text string, values ...any) (sql.Result, error) {
	if s := tx.db.statement(tx.db.DB.DB, text); s != nil {
		return tx.Tx.Tx.StmtContext(ctx, s).ExecContext(ctx, values...)
	}
	return tx.Tx.Tx.ExecContext(ctx, text, values...)
}
