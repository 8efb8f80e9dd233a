package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/batch"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/inbox"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/savedview"
	"backstop/migrations"

	"github.com/uptrace/bun"
)

// Retention is how long rows are kept after they are complete.
type Retention struct {
	Callbacks, Attempts, Notifications, History, Reports time.Duration
}

const (
	// cleanupStep is the maximum and minCleanupStep the minimum number of rows that one DELETE
	// examines. Each step has as many rows as take about cleanupStepTime: on SQLite, callbacks
	// wait for it, and they must be answered within milliseconds.
	cleanupStep     = 500
	minCleanupStep  = 50
	cleanupStepTime = 2 * time.Millisecond
	// cleanupBurst is how many steps a table gets before it is the next table's turn.
	cleanupBurst = 10
	// cleanupTime is the duration of one run; the next one continues.
	cleanupTime = 20 * time.Second
	// cleanupLast is how long the last step may take beyond cleanupTime.
	cleanupLast = 10 * time.Second
	// cleanupRest is the pause between two steps: clean-up uses only a few hundredths of the
	// single writer and of the disk, and still removes 20,000 rows in a run.
	cleanupRest = 50 * time.Millisecond
	// pingsKept is far longer than an operator waits for a ping.
	pingsKept = time.Minute
)

// cleanup removes rows past their retention in small steps. The keys of callbacks
// (callback_keys) are kept forever. An order's history is removed as a whole, by the age of the
// order.
func (j *Jobs) cleanup(ctx context.Context) error { return j.cleanFor(ctx, cleanupTime) }

// cleanFor gives all tables turns until nothing is left or the time is over: the backlog of one
// table, for example after its retention was shortened, may take days and must not delay the
// others.
func (j *Jobs) cleanFor(ctx context.Context, limit time.Duration) error {
	end := time.Now().Add(limit)
	ctx, cancel := context.WithTimeout(ctx, limit+cleanupLast)
	defer cancel()
	now := j.o.DB.Now()
	for name, keep := range map[string]time.Duration{order.HistorySince: j.o.Retention.History, notify.Since: j.o.Retention.Notifications} {
		if err := j.note(ctx, name, before(now, keep)); err != nil {
			return err
		}
	}
	all := j.old(ctx, now)
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

// old is the rows past their retention in one table.
type old struct {
	table string
	// step examines some rows, and returns how many it removed and whether there may be more.
	step    func(rows int) (n int64, more bool, err error)
	rows    int // to examine in the next step
	removed int64
}

// burst runs some steps, at least one even after end, and reports whether nothing is left.
func (o *old) burst(ctx context.Context, end time.Time) (empty bool, err error) {
	for range cleanupBurst {
		start := time.Now()
		n, more, err := o.step(max(o.rows, minCleanupStep))
		if o.removed += n; err != nil || !more {
			return err == nil, err
		}
		o.rows = nextStep(max(o.rows, minCleanupStep), time.Since(start))
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

// nextStep returns how many rows take about cleanupStepTime, judged by the last step.
func nextStep(rows int, took time.Duration) int {
	fit := float64(rows) * float64(cleanupStepTime) / float64(max(took, time.Microsecond))
	return int(min(max(fit, float64(rows)/2, minCleanupStep), 2*float64(rows), cleanupStep))
}

// before returns the id below which everything is older than keep.
func before(now int64, keep time.Duration) int64 { return db.IDAt(now - keep.Microseconds()) }

// old returns the rows past their retention, by table.
func (j *Jobs) old(ctx context.Context, now int64) []*old {
	r := j.o.Retention
	attempts, notifications := before(now, r.Attempts), before(now, r.Notifications)
	return []*old{
		j.archivePublicIDs(ctx, before(now, r.Callbacks), j.oldMonths(ctx, "callbacks", "id", now, r.Callbacks)),
		{table: "exception_callbacks", step: untilEmpty(func() (int64, error) { return j.deleteArchived(ctx, now-r.Callbacks.Microseconds()) })},
		j.oldRange(ctx, "callback_repeats", "callback_id", before(now, r.Callbacks), "TRUE"),
		j.oldMonths(ctx, "notify_attempts", "id", now, r.Attempts),
		j.oldMonths(ctx, "supplier_calls", "id", now, r.Attempts),
		j.oldRange(ctx, "breaker_history", "id", attempts, "TRUE"),
		// Open alerts and messages are kept.
		j.oldRange(ctx, "alerts", "id", attempts, "NOT "+alert.Moves.In("x.state", alert.Moves.Open()...)),
		j.oldRange(ctx, "incident_events", "id", attempts,
			"NOT EXISTS (SELECT 1 FROM incidents AS i WHERE i.id = x.incident_id AND (i.over_at IS NULL OR i.over_at >= "+
				fmt.Sprint(now-r.Attempts.Microseconds())+"))"),
		j.oldRange(ctx, "incidents", "id", attempts, "x.over_at < "+fmt.Sprint(now-r.Attempts.Microseconds())),
		j.oldRange(ctx, "alert_messages", "id", attempts, "NOT "+alert.MessageMoves.In("x.status", alert.MessageMoves.Open()...)),
		j.oldMonths(ctx, "order_history", "order_id", now, r.History),
		j.oldRange(ctx, "deliveries", "id", notifications, overDelivery),
		j.oldRange(ctx, "events", "id", notifications,
			"NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.subject_id = x.subject_id AND d.event_id = x.id)"),
		j.oldRange(ctx, "compensations", "id", before(now, r.History), "x.finished_at < "+fmt.Sprint(now-r.History.Microseconds())+
			" AND NOT "+compensation.Moves.In("x.state", compensation.Moves.Open()...)),
		j.oldRange(ctx, "compensation_tries", "id", before(now, r.History),
			"NOT EXISTS (SELECT 1 FROM compensations AS c WHERE c.id = x.compensation_id)"),
		{table: "batches", step: func(rows int) (int64, bool, error) { return batch.Clean(ctx, j.o.DB, rows) }},
		j.oldRange(ctx, "inbox", "id", before(now, inbox.Kept), "TRUE"),
		{table: "views", step: untilEmpty(func() (int64, error) { return savedview.Clean(ctx, j.o.DB) })},
		{table: "open_pings", step: untilEmpty(func() (int64, error) { return notify.RemoveLostPings(ctx, j.o.DB, before(now, pingsKept)) })},
		j.oldRange(ctx, "endpoint_waits", "until", now, "TRUE"),
		{table: "report", step: untilEmpty(func() (int64, error) { return report.Clean(ctx, j.o.DB, r.Reports) })},
	}
}

// overDelivery is the SQL condition of a delivery that is over: it is not open, nor was it given
// up while an exception of its order is open.
var overDelivery = "NOT " + notify.Moves.In("x.status", notify.Moves.Open()...) +
	" AND NOT (" + notify.Moves.In("x.status", notify.Exhausted) +
	" AND EXISTS (SELECT 1 FROM orders AS o JOIN exceptions AS e ON e.order_no = o.order_no" +
	" WHERE o.id = x.subject_id AND " + exception.Moves.In("e.state", exception.Moves.Open()...) + "))"

// untilEmpty repeats a step until it removes nothing.
func untilEmpty(remove func() (int64, error)) func(int) (int64, bool, error) {
	return func(int) (int64, bool, error) {
		n, err := remove()
		return n, n > 0, err
	}
}

// oldRange removes the rows whose key is before an id and that meet a condition (alias x). It
// goes through the keys in order, so that neither remaining rows nor the remains of deleted ones
// make each step slower than the one before. The condition is part of the DELETE itself: on
// PostgreSQL it is evaluated again for a row that changed meanwhile. No step waits for the disk:
// a step that a crash undoes is repeated.
func (j *Jobs) oldRange(ctx context.Context, table, key string, before int64, over string) *old {
	from := int64(0)
	of := bun.Ident(key)
	return &old{table: table, step: func(rows int) (n int64, more bool, err error) {
		to, err := j.rangeEnd(ctx, table, key, from, before, rows)
		if err != nil || to == 0 {
			return 0, false, err
		}
		err = j.o.DB.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
			res, err := q.NewRaw("DELETE FROM ? AS x WHERE x.? > ? AND x.? <= ? AND ?", bun.Ident(table), of, from, of, to,
				bun.Safe(over)).Exec(ctx)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		if err != nil {
			return 0, false, fmt.Errorf("clean up %s: %w", table, err)
		}
		from = to
		return n, true, nil
	}}
}

// rangeEnd returns the last of the next n keys of a table before an id, or 0 if there are none.
func (j *Jobs) rangeEnd(ctx context.Context, table, key string, from, before int64, n int) (to int64, err error) {
	of := bun.Ident(key)
	err = j.o.DB.Read.NewRaw("SELECT coalesce(max(p.?), 0) FROM (SELECT ? FROM ? WHERE ? > ? AND ? < ? ORDER BY ? LIMIT ?) AS p",
		of, of, bun.Ident(table), of, from, of, before, of, n).Scan(ctx, &to)
	if err != nil {
		return 0, fmt.Errorf("read the keys of %s: %w", table, err)
	}
	return to, nil
}

// wholeMonths is the shortest retention with which PostgreSQL drops whole months, so that rows
// stay up to a month longer. With a shorter one, rows are deleted as on SQLite.
const wholeMonths = 31 * 24 * time.Hour

// monthsEvery is how often partitions are added.
const monthsEvery = time.Hour

// addPartitions adds partitions for the coming months, and converts tables that were in use at
// the start.
func (j *Jobs) addPartitions(ctx context.Context) error {
	return migrations.Partition(ctx, j.o.DB, j.o.Log)
}

// oldMonths removes the rows past their retention from a table that PostgreSQL partitions by
// month. The first partition is the table as it was before it was partitioned, and may be
// large: rows are deleted from it until it can be dropped as a whole.
func (j *Jobs) oldMonths(ctx context.Context, table, key string, now int64, keep time.Duration) *old {
	var rows *old
	return &old{table: table, step: func(n int) (int64, bool, error) {
		if rows != nil {
			return rows.step(n)
		}
		dropped, err := j.o.DB.DropMonths(ctx, table, before(now, keep))
		for _, name := range dropped {
			j.o.Log.Info("clean up", "table", table, "dropped", name)
		}
		if err != nil {
			return 0, false, err
		}
		parts, err := j.o.DB.Partitions(ctx, table)
		if err != nil {
			return 0, false, err
		}
		name := table
		if len(parts) > 0 && keep >= wholeMonths {
			if !parts[0].First() {
				return 0, false, nil
			}
			name = parts[0].Name
		}
		rows = j.oldRange(ctx, name, key, before(now, keep), "TRUE")
		return rows.step(n)
	}}
}

// note records, before anything is removed, from which id on all rows of a kind are present:
// verify must not take removed rows for missing ones.
func (j *Jobs) note(ctx context.Context, name string, since int64) error {
	_, err := j.o.DB.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?)"+
		" ON CONFLICT (name) DO UPDATE SET value = CASE WHEN settings.value > EXCLUDED.value THEN settings.value ELSE EXCLUDED.value END",
		name, since).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record from when on rows are kept (%s): %w", name, err)
	}
	return nil
}
