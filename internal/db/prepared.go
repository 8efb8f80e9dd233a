package db

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
)

// Prepared asks a question of the hot path, whose text is the same for any values:
// PostgreSQL keeps it prepared. A slice of numbers or texts stands for the list in
// "IN (?)"; Each, in "WITH _v ?", for rows to join. q is a bun.Tx or a *bun.DB.
func (d *DB) Prepared(ctx context.Context, q bun.IDB, dest any, text string, args ...any) error {
	if !d.IsPostgres() {
		return q.NewRaw(text, literals(q, args)...).Scan(ctx, dest)
	}
	text, args = numbered(q, text, args)
	var rows *sql.Rows
	var err error
	// Behind bun, which would write the values into the text.
	switch q := q.(type) {
	case bun.Tx:
		rows, err = q.Tx.QueryContext(ctx, text, args...)
	case *bun.DB:
		rows, err = q.DB.QueryContext(ctx, text, args...)
	default:
		err = fmt.Errorf("a prepared question to %T", q)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	return d.ScanRows(ctx, rows, dest)
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

// Each is rows to join, a pointer to a slice of models: "WITH _v ?".
type Each struct{ Models any }

// literals are the arguments for bun.
func literals(q bun.IDB, args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case []int64, []string:
			out[i] = bun.List(arg)
		case Each:
			out[i] = bun.SafeQuery("("+newSet(q, arg.Models).names+") AS (?)", q.NewValues(arg.Models))
		default:
			out[i] = arg
		}
	}
	return out
}

// numbered turns a text into PostgreSQL's own placeholders, with one array for
// each list and for each column of rows.
func numbered(q bun.IDB, text string, args []any) (string, []any) {
	parts := strings.Split(text, "?")
	if len(parts) != len(args)+1 {
		panic(fmt.Sprintf("%d values for %q", len(args), text))
	}
	var b strings.Builder
	values := []any{pgx.QueryExecModeCacheStatement}
	for i, arg := range args {
		part := parts[i]
		switch arg := arg.(type) {
		case Each:
			s := newSet(q, arg.Models)
			fmt.Fprintf(&b, "%s(%s) AS (%s)", part, s.names, s.from(len(values)))
			values = append(values, s.columns...)
			continue
		case []int64, []string:
			part = strings.TrimSuffix(part, "IN (") + "= ANY ("
		}
		fmt.Fprintf(&b, "%s$%d", part, len(values))
		values = append(values, arg)
	}
	b.WriteString(parts[len(args)])
	return b.String(), values
}
