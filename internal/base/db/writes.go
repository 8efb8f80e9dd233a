package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun/schema"
)

// Writes gathers what one transaction is going to write and sends it in one round
// trip: a batch of group commit spends most of its time on round trips, with its
// rows locked.
type Writes struct {
	tx   Tx
	list []write
	err  error // of the queries that could not be written down
}

// write is one statement: complete in its text, or text, rows and what stands behind
// them, which stays prepared.
type write struct {
	text  string
	rows  *bulk.Rows
	after string
	guard int64 // rows that it must change; negative = any number
}

// Tx is the transaction that Exec writes in.
func (w *Writes) Tx() Tx { return w.tx }

// Add gathers a write whose result nobody reads. Exec returns the error of a query
// that cannot be written down.
func (w *Writes) Add(q schema.QueryAppender) { w.add(q, -1) }

// Guard gathers a compare-and-set that must change so many rows. Where the driver
// tells the row count of the last statement only, it runs after all plain writes.
func (w *Writes) Guard(q schema.QueryAppender, rows int) { w.add(q, int64(rows)) }

func (w *Writes) add(q schema.QueryAppender, guard int64) {
	text, err := q.AppendQuery(w.tx.db.DB.QueryGen(), nil)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("write down a query: %w", err))
		return
	}
	w.list = append(w.list, write{text: string(text), guard: guard})
}

// Insert gathers rows for a table: models points to a slice of
// them. conflict is what follows ON, as in "CONFLICT DO NOTHING"; empty = a
// conflict is an error.
func (w *Writes) Insert(models any, conflict string) {
	rows := bulk.Of(w.tx.db.DB, models)
	if conflict != "" {
		conflict = " ON " + conflict
	}
	text := w.tx.db.dialect.orFail("INSERT INTO " + rows.Table + " (" + rows.Names + ") ")
	w.list = append(w.list, write{text: text, rows: rows, after: conflict, guard: -1})
}

// GuardEach gathers a compare-and-set that joins models, a pointer to a slice, as _v
// and must change one row for each. update is the statement, the same for any values.
func (w *Writes) GuardEach(models any, update string) {
	rows := bulk.Of(w.tx.db.DB, models)
	after := ") " + w.tx.db.dialect.orFail(update)
	w.list = append(w.list, write{text: "WITH _v (" + rows.Names + ") AS (", rows: rows, after: after, guard: int64(rows.Len)})
}

// Exec sends what was gathered. ErrStale means that a guard met other rows than
// were read: the transaction must be rolled back.
func (w *Writes) Exec(ctx context.Context) error {
	list, err := w.list, w.err
	w.list, w.err = nil, nil
	if err != nil || len(list) == 0 {
		return err
	}
	if w.tx.conn != nil {
		return w.pipe(ctx, list)
	}
	for _, guards := range []bool{false, true} {
		for _, x := range list {
			if x.guard >= 0 != guards {
				continue
			}
			if err := x.exec(ctx, w.tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pipe sends statements together and reads their results together.
func (w *Writes) pipe(ctx context.Context, list []write) error {
	statements := make([]statement, len(list))
	for i, x := range list {
		statements[i] = statement{text: x.text}
		if x.rows != nil {
			from, values := x.rows.From(1)
			statements[i] = statement{x.text + from + x.after, values}
		}
	}
	return w.tx.pipeline(ctx, statements, func(i int, rows pgx.Rows) error {
		rows.Close()
		if list[i].guard >= 0 && rows.CommandTag().RowsAffected() != list[i].guard {
			return ErrStale
		}
		return nil
	})
}

// exec carries out one statement on an engine that needs no round trip for it.
func (x write) exec(ctx context.Context, tx Tx) error {
	var changed int64
	var err error
	if x.rows != nil {
		changed, err = x.each(ctx, tx)
	} else {
		// The text is complete: bun must not look for placeholders inside of literals.
		var res sql.Result
		if res, err = tx.Tx.Tx.ExecContext(ctx, x.text); err == nil {
			changed, err = res.RowsAffected()
		}
	}
	if err == nil && x.guard >= 0 && changed != x.guard {
		return ErrStale
	}
	return err
}

// each carries out a statement over rows by a few that stay prepared, the same for any
// number of rows, and says how many rows they changed.
func (x write) each(ctx context.Context, tx Tx) (changed int64, err error) {
	// Nothing here waits for anything: to watch the context costs more than it saves.
	ctx = context.WithoutCancel(ctx)
	for at := 0; at < x.rows.Len; {
		n := 1
		for n*4 <= min(x.rows.Len-at, 16) {
			n *= 4
		}
		rows, values := x.rows.Values(at, n)
		res, err := tx.execPrepared(ctx, x.text+rows+x.after, values...)
		if err != nil {
			return changed, err
		}
		m, err := res.RowsAffected()
		if err != nil {
			return changed, err
		}
		changed += m
		at += n
	}
	return changed, nil
}
