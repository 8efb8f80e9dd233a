package batch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Cause counts the rows that ended for one cause.
type Cause struct {
	Cause string
	Count int64
}

// Causes groups the ended rows of a batch by cause, the most frequent first. Rows without a
// cause are left out.
func (b *Batch) Causes(ctx context.Context, q bun.IDB) (all []Cause, err error) {
	// Every other cause is known when its row ends; an index has all that is read here.
	err = q.NewRaw(
		"SELECT cause, count(*) AS count FROM batch_rows WHERE batch_id = ? AND cause <> '' AND cause <> ? GROUP BY cause ORDER BY count(*) DESC, cause LIMIT ?",
		b.ID, MerchantBreaker, maxCauses).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("group the rows of a batch: %w", err)
	}
	if n := b.Result.Count(string(act.Waits)); n > 0 {
		all = append(all, Cause{MerchantBreaker, n})
		slices.SortStableFunc(all, func(x, y Cause) int { return cmp.Compare(y.Count, x.Count) })
	}
	return all, nil
}

// maxCauses bounds the groups that are read.
const maxCauses = 50

// RowQuery filters the rows of a batch; empty fields do not filter.
type RowQuery struct {
	State   string // a RowState
	Outcome string
	Cause   string
	After   int64 // only rows with greater numbers
	Limit   int
}

// Rows reads rows of a batch by number. more = there are further rows.
func Rows(ctx context.Context, q bun.IDB, id int64, f RowQuery) (rows []Row, more bool, err error) {
	s := q.NewSelect().Model(&rows).Where("br.batch_id = ?", id).Where("br.number > ?",
		f.After).OrderExpr("br.number").Limit(int64(f.Limit) + 1)
	for column, value := range map[string]string{"br.state": f.State, "br.outcome": f.Outcome, "br.cause": f.Cause} {
		if value != "" {
			s = s.Where("? = ?", bun.Safe(column), value)
		}
	}
	if err := s.Scan(ctx); err != nil {
		return nil, false, fmt.Errorf("read the rows of a batch: %w", err)
	}
	if len(rows) > f.Limit {
		return rows[:f.Limit], true, nil
	}
	return rows, false, nil
}

// List reads batches, newest first, with ids below the given one (0 = from the newest).
func List(ctx context.Context, q bun.IDB, below int64, limit int) (all []*Batch, err error) {
	s := q.NewSelect().Model(&all).OrderExpr("bt.id DESC").Limit(int64(limit))
	if below > 0 {
		s = s.Where("bt.id < ?", below)
	}
	if err := s.Scan(ctx); err != nil {
		return nil, fmt.Errorf("list batches: %w", err)
	}
	return all, nil
}

// MaxResults is how many rows, the first ones, Results covers.
const MaxResults = 10_000

// Results counts the results so far of the rows that were done, of the first MaxResults.
func (b *Batches) Results(ctx context.Context, x *Batch) (Tally, error) {
	k, ok := b.kind(x.Action, x.Object)
	if !ok || k.Set.Results == nil {
		return nil, nil
	}
	sums, err := k.Set.Results(ctx, b.o.DB.Read, x.ID, min(x.ToDo, MaxResults))
	t := Tally{}
	for _, s := range sums {
		t[s.Result] = append(t[s.Result], report.Sum{Currency: s.Currency, Orders: s.Orders, Minor: s.Minor})
	}
	return t, err
}

// ResultsOf returns what came by now of rows that were done, by ObjectID. nil = the rows say it all.
func (b *Batches) ResultsOf(ctx context.Context, x *Batch, rows []Row) (map[int64]string, error) {
	k, ok := b.kind(x.Action, x.Object)
	if !ok || k.Set.ResultsOf == nil || len(rows) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ObjectID
	}
	return k.Set.ResultsOf(ctx, b.o.DB.Read, ids)
}

// Pace is how fast a batch runs.
type Pace struct {
	PerSecond float64
	// Left is the estimated remaining time in seconds; -1 = unknown, because it is not running.
	Left int64
}

// Pace is computed from the work done since the start, capped at the rate.
func (b *Batch) Pace(now int64) (p Pace) {
	p.Left = -1
	end := now
	if b.FinishedAt != nil {
		end = *b.FinishedAt
	}
	if b.StartedAt != nil && end > *b.StartedAt {
		p.PerSecond = float64(b.Ended()) / (float64(end-*b.StartedAt) / 1e6)
	}
	if b.State == Running {
		at := p.PerSecond
		if at == 0 {
			at = float64(b.Rate)
		}
		p.Left = int64(float64(b.ToDo-b.Ended())/at + 0.999)
	}
	return p
}

// TakeUnalerted returns batches that stopped on their own, and marks them as alerted.
func TakeUnalerted(ctx context.Context, tx db.Tx, d *db.DB) (all []*Batch, err error) {
	err = tx.NewRaw(
		"UPDATE batches SET alerted_at = ? WHERE state = ? AND alerted_at IS NULL AND stopped_because NOT IN (?, ?) RETURNING *",
		d.Now(), Stopped, ByPerson, ByRejection).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("find batches that have stopped: %w", err)
	}
	return all, nil
}

// keptUS is how long ended batches are kept, in µs: 30 days.
const keptUS = 30 * 24 * 3600 * 1_000_000

// Clean deletes at most limit rows of batches past their retention, and then those batches.
// more = there may be others.
func Clean(ctx context.Context, d *db.DB, limit int) (n int64, more bool, err error) {
	var ids []int64
	err = d.Read.NewRaw("SELECT id FROM batches WHERE id < ? AND state IN (?) ORDER BY id LIMIT 1", db.IDAt(d.Now()-keptUS),
		bun.List(append(Moves.Final(), Planned))).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return 0, false, err
	}
	err = d.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		res, err := q.NewRaw(
			"DELETE FROM batch_rows WHERE batch_id = ? AND number IN (SELECT number FROM batch_rows WHERE batch_id = ? ORDER BY number LIMIT ?)", ids[0], ids[0], limit).Exec(ctx)
		if err == nil {
			n, err = res.RowsAffected()
		}
		if err != nil || n > 0 {
			return err
		}
		_, err = q.NewRaw("DELETE FROM batches WHERE id = ?", ids[0]).Exec(ctx)
		return err
	})
	if err != nil {
		return n, false, fmt.Errorf("clean up batches: %w", err)
	}
	return n, true, nil
}

// eachRows is how many rows EachRow reads per query.
const eachRows = 500

// EachRow calls fn with each matching row, by number, and stops at the first error.
func EachRow(ctx context.Context, q bun.IDB, id int64, f RowQuery, fn func(Row) error) error {
	for f.Limit, f.After = eachRows, 0; ; {
		rows, more, err := Rows(ctx, q, id, f)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := fn(r); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		f.After = rows[len(rows)-1].Number
	}
}
