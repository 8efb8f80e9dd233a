package db

import (
	"context"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
)

// Reads gathers questions as Prepared asks them and sends them in one round trip.
type Reads struct {
	tx   Tx
	list []statement
	rows []func(Row) error
}

// Row is one row of an answer.
type Row interface{ Scan(dest ...any) error }

// Add gathers a question. row is called for each row of its answer.
func (r *Reads) Add(row func(Row) error, text string, args ...any) {
	text, values := bulk.Bind(r.tx.db.DB, text, args)
	r.list = append(r.list, statement{text, values})
	r.rows = append(r.rows, row)
}

// Exec asks what was gathered, one after the other where there is no round trip to
// spare. It returns the first error, which may be a row's own.
func (r *Reads) Exec(ctx context.Context) error {
	if r.tx.conn != nil {
		return r.tx.pipeline(ctx, r.list, func(i int, rows pgx.Rows) error {
			for rows.Next() {
				if err := r.rows[i](rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	for i, s := range r.list {
		if err := r.ask(ctx, s, r.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reads) ask(ctx context.Context, s statement, row func(Row) error) error {
	rows, err := r.tx.db.query(ctx, preparer{r.tx.db.DB.DB, r.tx.Tx.Tx}, s.text, s.values)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
