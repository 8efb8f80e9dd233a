package db

import (
	"context"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
)

// Reads collects queries like those of Prepared and sends them in one round trip.
type Reads struct {
	tx   Tx
	list []read
}

// read is a query and what is done with its rows: each is passed to row, or all are read into dest.
type read struct {
	statement
	row  func(Row) error
	dest any
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
	r.list = append(r.list, read{statement: statement{text: text, values: values}, row: row})
}

// Into adds a query whose rows are read into dest, a pointer to a slice.
func (r *Reads) Into(dest any, text string, args ...any) {
	text, values := bulk.Bind(r.tx.db.DB, text, args)
	r.list = append(r.list, read{statement: statement{text: text, values: values}, dest: dest})
}

// Exec runs the queries: together on PostgreSQL, one after the other on SQLite, which has no
// round trips to save. It returns the first error, which may be one of row.
func (r *Reads) Exec(ctx context.Context) error {
	d := r.tx.db
	if len(r.list) == 0 {
		return nil
	}
	if r.tx.conn != nil {
		list := make([]statement, len(r.list))
		for i, q := range r.list {
			list[i] = q.statement
		}
		return r.tx.pipeline(ctx, list, func(i int, rows pgx.Rows) error {
			if q := r.list[i]; q.dest != nil {
				return d.scanAll(rows, q.dest)
			}
			return eachRow(rows, r.list[i].row)
		})
	}
	for _, q := range r.list {
		rows, err := d.query(ctx, d.DB, r.tx.Tx.Tx, q.text, q.values)
		if err != nil {
			return err
		}
		if q.dest != nil {
			err = d.ScanRows(ctx, rows, q.dest)
		} else {
			err = eachRow(rows, q.row)
		}
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
