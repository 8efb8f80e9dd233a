package db

import (
	"context"
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
// statement without them is complete in its text.
type write struct {
	text    string
	columns []any
	guard   int64 // rows that it must change; negative = any number
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
	if !w.postgres() {
		q := w.tx.NewInsert().Model(models)
		if conflict != "" {
			q = q.On(conflict)
		}
		w.Add(q)
		return
	}
	s := newSet(w.tx, models)
	text := "INSERT INTO " + s.table + " (" + s.names + ") " + s.from(1)
	if conflict != "" {
		text += " ON " + conflict
	}
	w.list = append(w.list, write{text, s.columns, -1})
}

// GuardEach gathers a compare-and-set that joins models, a pointer to a slice, as _v
// and must change one row for each. update is the statement, the same for any values.
func (w *Writes) GuardEach(models any, update string) {
	s := newSet(w.tx, models)
	if w.postgres() {
		w.list = append(w.list, write{"WITH _v (" + s.names + ") AS (" + s.from(1) + ") " + update, s.columns, int64(s.len)})
		return
	}
	w.Guard(w.tx.NewRaw("WITH _v ("+s.names+") AS (?) "+update, w.tx.NewValues(models)), s.len)
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
		_, err := w.tx.Tx.ExecContext(ctx, "", pipeline(list))
		return err
	}
	var plain []string
	for _, x := range list {
		if x.guard < 0 {
			plain = append(plain, x.text)
		}
	}
	if len(plain) > 0 {
		// The text is complete: bun must not look for placeholders inside of literals.
		if _, err := w.tx.Tx.ExecContext(ctx, strings.Join(plain, ";\n")); err != nil {
			return err
		}
	}
	for _, x := range list {
		if x.guard < 0 {
			continue
		}
		res, err := w.tx.Tx.ExecContext(ctx, x.text)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != x.guard {
			return ErrStale
		}
	}
	return nil
}
