package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/migrations"
)

// Retention is how long rows are kept that are only read.
type Retention struct {
	Callbacks, Attempts, History, Reports time.Duration
}

const (
	// cleanupStep is the rows of one DELETE: few enough to hold up no other write.
	cleanupStep = 500
	// cleanupBurst is how many steps one table has before it is the next one's turn.
	cleanupBurst = 10
	// cleanupTime is the time of one run; the next one goes on.
	cleanupTime = 20 * time.Second
	// cleanupLast is what the step that was begun last may take beyond that.
	cleanupLast = 10 * time.Second
	// cleanupRest lets others write between two steps.
	cleanupRest = 5 * time.Millisecond
	// pingsKept is far longer than an operator waits for a ping.
	pingsKept = time.Minute
)

// cleanup removes what is past its retention, in small steps. The keys of callbacks
// (callback_keys) are kept for ever. An order's history is removed as a whole, by the age
// of the order.
func (j *Jobs) cleanup(ctx context.Context) error { return j.cleanFor(ctx, cleanupTime) }

// cleanFor gives all tables their turns until nothing is left or the time is over: a long
// backlog of one, after its retention was shortened for example, may take days and must
// not hold up the others.
func (j *Jobs) cleanFor(ctx context.Context, limit time.Duration) error {
	end := time.Now().Add(limit)
	ctx, cancel := context.WithTimeout(ctx, limit+cleanupLast)
	defer cancel()
	if err := j.noteHistory(ctx, j.o.Retention.History); err != nil {
		return err
	}
	all := j.old(ctx)
	defer func() {
		for _, o := range all {
			if o.removed > 0 {
				j.o.Log.Info("clean up", "table", o.table, "rows", o.removed)
			}
		}
	}()
	for left := all; len(left) > 0 && time.Now().Before(end); {
		var more []*old
		for _, o := range left {
			empty, err := o.burst(ctx, end)
			if err != nil {
				return err
			}
			if !empty {
				more = append(more, o)
			}
		}
		left = more
	}
	return nil
}

// old is what is past its retention in one table.
type old struct {
	table   string
	step    func() (int64, error) // removes some rows, and returns how many
	minimum int64                 // a step that removes fewer was the last one
	removed int64
}

// burst runs some steps, one at least whatever the time is, and reports whether nothing is
// left.
func (o *old) burst(ctx context.Context, end time.Time) (empty bool, err error) {
	for range cleanupBurst {
		n, err := o.step()
		if o.removed += n; err != nil || n < o.minimum {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(cleanupRest):
		}
		if time.Now().After(end) {
			break
		}
	}
	return false, nil
}

// old is all that is past its retention.
func (j *Jobs) old(ctx context.Context) []*old {
	r := j.o.Retention
	lost := db.IDAt(j.o.DB.Now() - pingsKept.Microseconds())
	return []*old{
		j.oldMonths(ctx, "callbacks", "id", r.Callbacks),
		j.oldRows(ctx, "callback_repeats", "callback_id", "callback_id", r.Callbacks, ""),
		j.oldMonths(ctx, "notify_attempts", "id", r.Attempts),
		j.oldRows(ctx, "breaker_history", "id", "id", r.Attempts, ""),
		// What has not ended is kept.
		j.oldRows(ctx, "alerts", "id", "id", r.Attempts, " AND NOT "+moves.In("state", alert.Moves.Open()...)),
		j.oldRows(ctx, "alert_messages", "id", "id", r.Attempts, " AND NOT "+moves.In("status", alert.MessageMoves.Open()...)),
		j.oldMonths(ctx, "order_history", "order_id", r.History),
		{table: "open_pings", minimum: 1, step: func() (int64, error) { return notify.RemoveLostPings(ctx, j.o.DB, lost) }},
		{table: "report", minimum: 1, step: func() (int64, error) { return report.Clean(ctx, j.o.DB, r.Reports) }},
	}
}

// oldRows removes, by the table's key, the rows whose column, an id, is past its time.
func (j *Jobs) oldRows(ctx context.Context, table, key, column string, keep time.Duration, over string) *old {
	before := db.IDAt(j.o.DB.Now() - keep.Microseconds())
	query := fmt.Sprintf("DELETE FROM %s WHERE %s IN (SELECT %s FROM %s WHERE %s < ?%s ORDER BY %s LIMIT ?)", table, key, key, table, column, over, column)
	return &old{table: table, minimum: cleanupStep, step: func() (int64, error) {
		res, err := j.o.DB.NewRaw(query, before, cleanupStep).Exec(ctx)
		if err != nil {
			return 0, fmt.Errorf("clean up %s: %w", table, err)
		}
		return res.RowsAffected()
	}}
}

// wholeMonths is the shortest retention by which PostgreSQL drops whole months, so that
// rows stay for up to a month more. With a shorter one they are deleted as on SQLite.
const wholeMonths = 31 * 24 * time.Hour

// monthsEvery is how often partitions are added.
const monthsEvery = time.Hour

// addPartitions adds the months to come, and converts tables that were in use at the start.
func (j *Jobs) addPartitions(ctx context.Context) error {
	return migrations.Partition(ctx, j.o.DB, j.o.Log)
}

// oldMonths removes what is past its time of a table that PostgreSQL partitions by month.
// The first partition is what there was before, and may be large: rows are deleted from it
// until it can go as a whole.
func (j *Jobs) oldMonths(ctx context.Context, table, key string, keep time.Duration) *old {
	var rows *old
	return &old{table: table, minimum: cleanupStep, step: func() (int64, error) {
		if rows != nil {
			return rows.step()
		}
		dropped, err := j.o.DB.DropMonths(ctx, table, db.IDAt(j.o.DB.Now()-keep.Microseconds()))
		for _, name := range dropped {
			j.o.Log.Info("clean up", "table", table, "dropped", name)
		}
		if err != nil {
			return 0, err
		}
		parts, err := j.o.DB.Partitions(ctx, table)
		if err != nil {
			return 0, err
		}
		name := table
		if len(parts) > 0 && keep >= wholeMonths {
			if !parts[0].First() {
				return 0, nil
			}
			name = parts[0].Name
		}
		rows = j.oldRows(ctx, name, key, key, keep, "")
		return rows.step()
	}}
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
