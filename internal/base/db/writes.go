package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/uptrace/bun"
	bundialect "github.com/uptrace/bun/dialect"
)

// Writes gathers what one transaction is going to write and sends it in one round
// trip: a batch of group commit spends most of its time on round trips, with its
// rows locked.
type Writes struct {
	tx   bun.Tx
	list []write
}

// write is one statement. columns are its values where it stays prepared; a
// statement without them is complete in its text. Where rows is given, text is what
// stands before the rows, and after what stands behind them.
type write struct {
	text    string
	columns []any
	guard   int64 // rows that it must change; negative = any number
	rows    *set
	after   string
}

// NewWrites starts to gather writes of a transaction.
func NewWrites(tx bun.Tx) *Writes { return &Writes{tx: tx} }

func (w *Writes) postgres() bool { return w.tx.Dialect().Name() == bundialect.PG }

// Add gathers a write whose result nobody reads.
func (w *Writes) Add(q fmt.Stringer) { w.list = append(w.list, write{text: q.String(), guard: -1}) }

// Guard gathers a compare-and-set that must change so many rows. Where the driver
// tells the row count of the last statement only, it runs after all plain writes.
func (w *Writes) Guard(q fmt.Stringer, rows int) {
	w.list = append(w.list, write{text: q.String(), guard: int64(rows)})
}

// Insert gathers rows for a table: models points to a slice of
// them. conflict is what follows ON, as in "CONFLICT DO NOTHING"; empty = a
// conflict is an error.
func (w *Writes) Insert(models any, conflict string) {
	s := newSet(w.tx, models)
	if conflict != "" {
		conflict = " ON " + conflict
	}
	text := "INSERT INTO " + s.table + " (" + s.names + ") "
	if w.postgres() {
		from, columns := s.from(1)
		w.list = append(w.list, write{text: text + from + conflict, columns: columns, guard: -1})
		return
	}
	w.list = append(w.list, write{text: orFail(text), rows: &s, after: conflict, guard: -1})
}

// GuardEach gathers a compare-and-set that joins models, a pointer to a slice, as _v
// and must change one row for each. update is the statement, the same for any values.
func (w *Writes) GuardEach(models any, update string) {
	s := newSet(w.tx, models)
	text := "WITH _v (" + s.names + ") AS ("
	if w.postgres() {
		from, columns := s.from(1)
		w.list = append(w.list, write{text: text + from + ") " + update, columns: columns, guard: int64(s.len)})
		return
	}
	w.list = append(w.list, write{text: text, rows: &s, after: ") " + orFail(update), guard: int64(s.len)})
}

// Exec sends what was gathered. ErrStale means that a guard met other rows than
// were read: the transaction must be rolled back.
func (w *Writes) Exec(ctx context.Context) error {
	list := w.list
	w.list = nil
	if len(list) == 0 {
		return nil
	}
	if w.postgres() {
		if _, err := w.tx.Tx.ExecContext(ctx, "", pipeline(list)); !errors.Is(err, errPiped) {
			return err
		}
		return nil
	}
	for _, guards := range []bool{false, true} {
		for _, x := range list {
			if x.guard >= 0 != guards {
				continue
			}
			if err := x.exec(ctx, w.tx.Tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// exec carries out one statement on an engine that needs no round trip for it.
func (x write) exec(ctx context.Context, tx *sql.Tx) error {
	var changed int64
	var err error
	if x.rows != nil {
		changed, err = x.each(ctx, tx)
	} else {
		// The text is complete: bun must not look for placeholders inside of literals.
		var res sql.Result
		if res, err = tx.ExecContext(ctx, x.text); err == nil {
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
func (x write) each(ctx context.Context, tx *sql.Tx) (changed int64, err error) {
	// Nothing here waits for anything: to watch the context costs more than it saves.
	ctx = context.WithoutCancel(ctx)
	one := "(?" + strings.Repeat(", ?", len(x.rows.columns)-1) + ")"
	for at := 0; at < x.rows.len; {
		n := 1
		for n*4 <= min(x.rows.len-at, 16) {
			n *= 4
		}
		values := make([]any, 0, n*len(x.rows.columns))
		for i := range n {
			values = append(values, x.rows.row(at+i)...)
		}
		res, err := execPrepared(ctx, tx, x.text+"VALUES "+one+strings.Repeat(", "+one, n-1)+x.after, values...)
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
