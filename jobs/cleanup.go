package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/db"
	"backstop/internal/report"
)

// Retention says how long rows are kept that are only there to be read.
type Retention struct {
	Callbacks, Attempts, History, Reports time.Duration
}

const (
	// cleanupStep is the rows of one DELETE: short enough that nobody waits.
	cleanupStep = 500
	// cleanupTime bounds one run; the next one goes on.
	cleanupTime = 20 * time.Second
	// cleanupRest lets others write between two steps.
	cleanupRest = 5 * time.Millisecond
	// pingsKept is long past the time in which somebody waits for an asked ping.
	pingsKept = time.Minute
	// orphanKeys is how many keys of Redis one run passes by.
	orphanKeys = 20_000
)

// cleanup removes what is past its retention, in small steps, and orphaned tasks
// in Redis. That a callback was seen (callback_keys) is kept for ever. An
// order's history goes as a whole, by the age of the order.
func (j *Jobs) cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	for _, c := range []struct {
		table, column string
		keep          time.Duration
		over          string // what still goes on is kept
	}{
		{"callbacks", "id", j.o.Retention.Callbacks, ""},
		{"notify_attempts", "id", j.o.Retention.Attempts, ""},
		{"breaker_history", "id", j.o.Retention.Attempts, ""},
		{"alerts", "id", j.o.Retention.Attempts, " AND state <> 'firing'"},
		{"alert_messages", "id", j.o.Retention.Attempts, " AND status <> 'waiting'"},
		{"pings", "id", pingsKept, ""},
		{"order_history", "order_id", j.o.Retention.History, ""},
	} {
		if c.table == "order_history" {
			if err := j.noteHistory(ctx, c.keep); err != nil {
				return err
			}
		}
		n, err := j.remove(ctx, c.table, c.column+" < ?"+c.over+" ORDER BY "+c.column, c.keep)
		if err != nil {
			return err
		}
		if n > 0 {
			j.o.Log.Info("clean up", "table", c.table, "rows", n)
		}
	}
	if err := j.removeFigures(ctx); err != nil {
		return err
	}
	count, err := j.o.Queue.Orphans(ctx, orphanKeys)
	if count.Deleted > 0 {
		j.o.Log.Info("clean up", "orphaned_tasks", count.Deleted)
	}
	return err
}

// remove deletes the rows that old finds, which is given the first id to keep.
func (j *Jobs) remove(ctx context.Context, table, old string, keep time.Duration) (removed int64, err error) {
	before := db.IDAt(j.o.DB.Now() - keep.Microseconds())
	query := fmt.Sprintf("DELETE FROM %s WHERE id IN (SELECT id FROM %s WHERE %s LIMIT ?)", table, table, old)
	for ctx.Err() == nil {
		res, err := j.o.DB.NewRaw(query, before, cleanupStep).Exec(ctx)
		if err != nil {
			return removed, fmt.Errorf("clean up %s: %w", table, err)
		}
		n, _ := res.RowsAffected()
		removed += n
		if n < cleanupStep {
			return removed, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(cleanupRest):
		}
	}
	return removed, nil
}

// removeFigures goes on until nothing old is left: figures by the minute come as
// fast as there are merchants, and one step a run would fall behind a hundred.
func (j *Jobs) removeFigures(ctx context.Context) error {
	var removed int64
	for ctx.Err() == nil {
		n, err := report.Clean(ctx, j.o.DB, j.o.Retention.Reports)
		if err != nil {
			return err
		}
		if removed += n; n == 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(cleanupRest):
		}
	}
	if removed > 0 {
		j.o.Log.Info("clean up", "report_rows", removed)
	}
	return nil
}

// noteHistory writes down, before anything goes, from which order on histories
// are complete: verify must not take a cleaned one for a damaged one.
func (j *Jobs) noteHistory(ctx context.Context, keep time.Duration) error {
	since := db.IDAt(j.o.DB.Now() - keep.Microseconds())
	_, err := j.o.DB.NewRaw("INSERT INTO settings (name, value) VALUES ('history_since', ?)"+
		" ON CONFLICT (name) DO UPDATE SET value = CASE WHEN settings.value > EXCLUDED.value THEN settings.value ELSE EXCLUDED.value END", since).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note the age of the history: %w", err)
	}
	return nil
}
