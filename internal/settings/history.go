package settings

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Cause is who changes settings, and why.
type Cause struct {
	Actor    string // as in the audit
	Reason   string // "" = none given
	Approval string // the public id of the approval; "" = no second person was needed
}

// HistoryRow is one changed field. Old and New are those of a Difference.
type HistoryRow struct {
	bun.BaseModel `bun:"table:setting_history,alias:sh"`

	ID      int64  `bun:"id,pk"`
	Object  string `bun:"object"`  // Object.String()
	Version int64  `bun:"version"` // of the settings, once changed
	Field   string `bun:"field"`   // "" = the object was created
	Old     string `bun:"old"`
	New     string `bun:"new"`
	Cause
	At int64 `bun:"at"` // Unix µs
}

// historyChunk bounds the rows of one INSERT.
const historyChunk = 500

// writeHistory records each changed field. Stock and opening balances are booked, not changed.
func (w *commit) writeHistory(ctx context.Context, changes []Change, outcomes []Outcome, by Cause) error {
	var rows []HistoryRow
	add := func(o Object, field, old, is string) {
		rows = append(rows, HistoryRow{
			ID: w.env.DB.NewID(), Object: o.String(), Version: w.version + 1, Field: field, Old: old, New: is, Cause: by, At: w.now,
		})
	}
	for i, c := range changes {
		switch {
		case c.bookedOnce():
		case outcomes[i].What == Created:
			add(c.Object, "", "", "")
		case outcomes[i].What == Changed:
			for _, d := range c.Diff() {
				add(c.Object, d.Field, d.Old, d.New)
			}
		}
	}
	for part := range slices.Chunk(rows, historyChunk) {
		if _, err := w.tx.NewInsert().Model(&part).Exec(ctx); err != nil {
			return fmt.Errorf("write the history of settings: %w", err)
		}
	}
	return nil
}

// History returns the changes of an object after a version of the settings, newest first.
func History(ctx context.Context, d *db.DB, o Object, after int64, limit int64) (rows []HistoryRow, err error) {
	err = d.Read.NewSelect().Model(&rows).Where("sh.object = ?", o.String()).Where("sh.version > ?", after).
		OrderExpr("sh.id DESC").Limit(limit).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", o, err)
	}
	return rows, nil
}
