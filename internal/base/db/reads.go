package db

import (
	"context"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
)

// Reads collects queries like those of Prepared and sends them in one round trip.
type Reads struct {
	tx   Tx
	list []statement
	rows []func(Row) error
}

// Row is one row of a result.
type Row interface{ Scan(dest ...any) error }

// rowSet is *sql.Rows or pgx.Rows.
type rowSet interface {
	Row
	Next() bool
	Err() error
}

// Add adds a query. row is called for each row of its result.
func (r *Reads) Add(row func(Row) error, text string, args ...any) {
	text, values := bulk.Bind(r.tx.db.DB, text, args)
	r.list = append(r.list, statement{text, values})
	r.rows = append(r.rows, row)
}

// Exec runs the queries: together on PostgreSQL, one after the other on SQLite, which has no
// round trips to save. It returns the first error, which may be one of row.
func (r *Reads) Exec(ctx context.Context) error {
	if r.tx.conn != nil {
		return r.tx.pipeline(ctx, r.list, func(i int, rows pgx.Rows) error { return eachRow(rows, r.rows[i]) })
	}
	for i, s := range r.list {
		rows, err := r.tx.db.query(ctx, r.tx.db.DB, r.tx.Tx.Tx, s.text, s.values)
		if err != nil {
			return err
		}
		err = eachRow(rows, r.rows[i])
		rows.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func eachRow(rows rowSet, row func(Row) error) error {
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
