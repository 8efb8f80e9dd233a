package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/uptrace/bun"
)

// Writes gathers what one transaction is going to write and sends it in one round
// trip: a batch of group commit spends most of its time on round trips, with its
// rows locked.
type Writes struct {
	tx     bun.Tx
	plain  []string
	guards []guard
}

// guard is a compare-and-set: a statement that must change so many rows.
type guard struct {
	text string
	rows int64
}

// NewWrites starts to gather writes of a transaction.
func NewWrites(tx bun.Tx) *Writes { return &Writes{tx: tx} }

// Add gathers a write whose result nobody reads.
func (w *Writes) Add(q fmt.Stringer) { w.plain = append(w.plain, q.String()) }

// Guard gathers a compare-and-set that must change so many rows. It runs after
// all plain writes: a driver tells the row count of the last statement only.
func (w *Writes) Guard(q fmt.Stringer, rows int) {
	w.guards = append(w.guards, guard{q.String(), int64(rows)})
}

// Exec sends what was gathered. ErrStale means that a guard met other rows than
// were read: the transaction must be rolled back.
func (w *Writes) Exec(ctx context.Context) error {
	for len(w.plain) > 0 || len(w.guards) > 0 {
		texts, wanted := w.plain, int64(-1)
		w.plain = nil
		if len(w.guards) > 0 {
			texts, wanted = append(texts, w.guards[0].text), w.guards[0].rows
			w.guards = w.guards[1:]
		}
		// The text is complete: bun must not look for placeholders inside of literals.
		res, err := w.tx.Tx.ExecContext(ctx, strings.Join(texts, ";\n"))
		if err != nil {
			return err
		}
		if wanted < 0 {
			continue
		}
		if n, err := res.RowsAffected(); err != nil || n != wanted {
			return ErrStale
		}
	}
	return nil
}
