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

// Writes collects the writes of one transaction and sends them in one round trip: a batch of
// group commit spends most of its time on round trips, with its rows locked.
type Writes struct {
	tx   Tx
	list []write
	err  error // from queries that could not be formatted
}

// write is one statement: either a complete text, or text, rows and after, which stays
// prepared.
type write struct {
	text  string
	rows  *bulk.Rows
	after string
	guard int64 // number of rows that the statement must change; negative = any
}

// Tx returns the transaction that Exec writes in.
func (w *Writes) Tx() Tx { return w.tx }

// Add adds a write that may change any number of rows. Exec returns the error of a query that
// cannot be formatted.
func (w *Writes) Add(q schema.QueryAppender) { w.add(q, -1) }

// Guard adds a compare-and-set that must change exactly this many rows. On SQLite it runs
// after all plain writes.
func (w *Writes) Guard(q schema.QueryAppender, rows int) { w.add(q, int64(rows)) }

func (w *Writes) add(q schema.QueryAppender, guard int64) {
	text, err := q.AppendQuery(w.tx.db.DB.QueryGen(), nil)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("format a query: %w", err))
		return
	}
	w.list = append(w.list, write{text: string(text), guard: guard})
}

// Insert adds rows for a table: models points to a slice of them. conflict is the clause after
// ON, as in "CONFLICT DO NOTHING"; empty = a conflict is an error.
func (w *Writes) Insert(models any, conflict string) { w.insert(models, conflict, false) }

// GuardInsert is Insert with a conflict clause that is a compare-and-set: each row must be
// inserted or change the stored one.
func (w *Writes) GuardInsert(models any, conflict string) { w.insert(models, conflict, true) }

func (w *Writes) insert(models any, conflict string, guarded bool) {
	rows := bulk.Of(w.tx.db.DB, models)
	guard := int64(-1)
	if guarded {
		guard = int64(rows.Len)
	}
	if conflict != "" {
		conflict = " ON " + conflict
	}
	text := w.tx.db.orFail("INSERT INTO " + rows.Table + " (" + rows.Names + ") ")
	w.list = append(w.list, write{text: text, rows: rows, after: conflict, guard: guard})
}

// GuardEach adds a compare-and-set that joins models, a pointer to a slice, as _v and must
// change one row for each model. update is the statement, the same for any values.
func (w *Writes) GuardEach(models any, update string) {
	rows := bulk.Of(w.tx.db.DB, models)
	w.list = append(w.list, write{
		text: "WITH _v (" + rows.Names + ") AS (", rows: rows, after: ") " + w.tx.db.orFail(update), guard: int64(rows.Len),
	})
}

// Exec sends the collected writes. ErrStale means that a guard did not find the rows that were
// read: the transaction must be rolled back.
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

// pipe sends the statements together and reads their results together.
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

// exec runs one statement on SQLite.
func (x write) exec(ctx context.Context, tx Tx) error {
	var changed int64
	var err error
	if x.rows != nil {
		changed, err = x.each(ctx, tx)
	} else {
		// The text is complete: bun must not look for placeholders inside literals.
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

// each runs a statement over rows as one or more prepared statements of 1, 4 or 16 rows, and
// returns how many rows they changed.
func (x write) each(ctx context.Context, tx Tx) (changed int64, err error) {
	// Nothing here blocks: watching the context would cost more than it saves.
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
