package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/migrations"

	"github.com/uptrace/bun"
)

// Retention is how long rows are kept that are only read.
type Retention struct {
	Callbacks, Attempts, Notifications, History, Reports time.Duration
}

const (
	// cleanupStep is the rows that one DELETE looks at: few enough to hold up no other write.
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

// old is what is past its retention in one table.
type old struct {
	table string
	// step removes some rows, and returns how many and whether there may be more.
	step    func() (n int64, more bool, err error)
	removed int64
}

// burst runs some steps, one at least whatever the time is, and reports whether nothing is
// left.
func (o *old) burst(ctx context.Context, end time.Time) (empty bool, err error) {
	for range cleanupBurst {
		n, more, err := o.step()
		if o.removed += n; err != nil || !more {
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

// before is the id below which everything is older than keep.
func before(now int64, keep time.Duration) int64 { return db.IDAt(now - keep.Microseconds()) }

// old is all that is past its retention.
func (j *Jobs) old(ctx context.Context, now int64) []*old {
	r := j.o.Retention
	attempts, notifications := before(now, r.Attempts), before(now, r.Notifications)
	return []*old{
		j.keepNamed(ctx, before(now, r.Callbacks), j.oldMonths(ctx, "callbacks", "id", now, r.Callbacks)),
		{table: "exception_callbacks", step: whileAny(func() (int64, error) { return j.forget(ctx, now-r.Callbacks.Microseconds()) })},
		j.oldRows(ctx, "callback_repeats", "callback_id", "callback_id", before(now, r.Callbacks), ""),
		j.oldMonths(ctx, "notify_attempts", "id", now, r.Attempts),
		j.oldRows(ctx, "breaker_history", "id", "id", attempts, ""),
		// What has not ended is kept.
		j.oldRows(ctx, "alerts", "id", "id", attempts, " AND NOT "+moves.In("state", alert.Moves.Open()...)),
		j.oldRows(ctx, "alert_messages", "id", "id", attempts, " AND NOT "+moves.In("status", alert.MessageMoves.Open()...)),
		j.oldMonths(ctx, "order_history", "order_id", now, r.History),
		j.oldRange(ctx, "deliveries", notifications, overDelivery),
		j.oldRange(ctx, "events", notifications, "NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.subject_id = x.subject_id AND d.event_id = x.id)"),
		{table: "open_pings", step: whileAny(func() (int64, error) { return notify.RemoveLostPings(ctx, j.o.DB, before(now, pingsKept)) })},
		{table: "report", step: whileAny(func() (int64, error) { return report.Clean(ctx, j.o.DB, r.Reports) })},
	}
}

// overDelivery holds for a delivery that nothing and nobody will go on with.
var overDelivery = "NOT " + moves.In("x.status", notify.Moves.Open()...) +
	" AND NOT (" + moves.In("x.status", notify.Exhausted) + " AND EXISTS (SELECT 1 FROM orders AS o JOIN exceptions AS e ON e.order_no = o.order_no" +
	" WHERE o.id = x.subject_id AND " + moves.In("e.state", exception.Moves.Open()...) + "))"

// whileAny repeats a step until it removes nothing.
func whileAny(remove func() (int64, error)) func() (int64, bool, error) {
	return func() (int64, bool, error) {
		n, err := remove()
		return n, n > 0, err
	}
}

// oldRange removes the rows before an id for which a condition on them (alias x) holds.
// It goes through the ids, so that the rows that stay cost each step no more than the
// others. The condition is part of the DELETE itself: on PostgreSQL it is asked again of a
// row that changed meanwhile.
func (j *Jobs) oldRange(ctx context.Context, table string, before int64, over string) *old {
	from := int64(0)
	return &old{table: table, step: func() (int64, bool, error) {
		to, err := j.rangeEnd(ctx, table, from, before, cleanupStep)
		if err != nil || to == 0 {
			return 0, false, err
		}
		res, err := j.o.DB.NewRaw("DELETE FROM ? AS x WHERE x.id > ? AND x.id <= ? AND "+over, bun.Ident(table), from, to).Exec(ctx)
		if err != nil {
			return 0, false, fmt.Errorf("clean up %s: %w", table, err)
		}
		from = to
		n, err := res.RowsAffected()
		return n, true, err
	}}
}

// rangeEnd is the last of the next n ids of a table before an id, or 0.
func (j *Jobs) rangeEnd(ctx context.Context, table string, from, before int64, n int) (to int64, err error) {
	err = j.o.DB.Read.NewRaw("SELECT coalesce(max(p.id), 0) FROM (SELECT id FROM ? WHERE id > ? AND id < ? ORDER BY id LIMIT ?) AS p",
		bun.Ident(table), from, before, n).Scan(ctx, &to)
	if err != nil {
		return 0, fmt.Errorf("read the ids of %s: %w", table, err)
	}
	return to, nil
}

// oldRows removes, by the table's key, the rows whose column, an id, is before an id.
func (j *Jobs) oldRows(ctx context.Context, table, key, column string, before int64, over string) *old {
	query := fmt.Sprintf("DELETE FROM %s WHERE %s IN (SELECT %s FROM %s WHERE %s < ?%s ORDER BY %s LIMIT ?)", table, key, key, table, column, over, column)
	return &old{table: table, step: func() (int64, bool, error) {
		res, err := j.o.DB.NewRaw(query, before, cleanupStep).Exec(ctx)
		if err != nil {
			return 0, false, fmt.Errorf("clean up %s: %w", table, err)
		}
		n, err := res.RowsAffected()
		return n, n == cleanupStep, err
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
func (j *Jobs) oldMonths(ctx context.Context, table, key string, now int64, keep time.Duration) *old {
	var rows *old
	return &old{table: table, step: func() (int64, bool, error) {
		if rows != nil {
			return rows.step()
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
		rows = j.oldRows(ctx, name, key, key, before(now, keep), "")
		return rows.step()
	}}
}

// note writes down, before anything goes, from which order on all rows of a kind are
// there: verify must not take what was cleaned for what was damaged.
func (j *Jobs) note(ctx context.Context, name string, since int64) error {
	_, err := j.o.DB.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?)"+
		" ON CONFLICT (name) DO UPDATE SET value = CASE WHEN settings.value > EXCLUDED.value THEN settings.value ELSE EXCLUDED.value END", name, since).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note from when on rows are kept (%s): %w", name, err)
	}
	return nil
}
