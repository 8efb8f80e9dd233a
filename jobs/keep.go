package jobs

import (
	"context"
	"fmt"

	"backstop/internal/base/moves"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

const (
	// lookedAt is the name in settings of the id up to which callbacks have been checked.
	lookedAt = "callbacks_looked_at"
	// lookStep is how many callbacks are checked at once. Few have an exception.
	lookStep = 2000
)

// named selects the callbacks of a range that belong to an open exception: by its subject or,
// if that is a refund or a dispute, by its order.
var named = func() string {
	of := "SELECT e.id AS exception_id, c.id AS callback_id FROM callbacks AS c CROSS JOIN exceptions AS e" + // in this order
		" WHERE c.id > ?0 AND c.id <= ?1 AND c.outcome IN (?2) AND e.kind = c.outcome AND e.supplier_id = c.supplier_id AND e.order_no = c.order_no" +
		" AND " + exception.Moves.In("e.state", exception.Moves.Open()...) + " AND %s"
	return fmt.Sprintf(of, "e.subject <> '' AND e.subject IN (c.trade_no, c.event_key)") + " UNION " +
		fmt.Sprintf(of, "c.order_no <> '' AND "+moves.Words("e.kind", exception.UnknownRefund, exception.DisputeOpened))
}()

// archivePublicIDs removes old callbacks only after those that belong to an open exception have been
// copied to it.
func (j *Jobs) archivePublicIDs(ctx context.Context, before int64, gone *old) *old {
	from, remove := int64(-1), gone.step
	gone.step = func(rows int) (int64, bool, error) {
		if from >= before {
			return remove(rows)
		}
		if from < 0 {
			if err := j.o.DB.Read.NewRaw("SELECT coalesce(max(value), 0) FROM settings WHERE name = ?", lookedAt).Scan(ctx,
				&from); err != nil {
				return 0, false, fmt.Errorf("read which callbacks were checked: %w", err)
			}
		}
		to, err := j.rangeEnd(ctx, "callbacks", "id", from, before, lookStep)
		if err != nil {
			return 0, false, err
		}
		if to == 0 { // there are no more
			from = before
			return remove(rows)
		}
		if err := j.copyPublicIDs(ctx, from, to); err != nil {
			return 0, false, err
		}
		from = to
		return 0, true, j.note(ctx, lookedAt, to)
	}
	return gone
}

func (j *Jobs) copyPublicIDs(ctx context.Context, from, to int64) error {
	var any bool // nearly always false, and then no writer has to wait
	if err := j.o.DB.Read.NewRaw("SELECT EXISTS ("+named+")", from, to, bun.List(exception.Kinds)).Scan(ctx, &any); err != nil || !any {
		return err
	}
	_, err := j.o.DB.NewRaw(
		"INSERT INTO exception_callbacks (exception_id, callback_id, received_at, trade_no, remote_addr, method, query, headers, body, size)"+
			" SELECT m.exception_id, c.id, c.received_at, c.trade_no, c.remote_addr, c.method, substr(c.query, 1, ?3), substr(c.headers, 1, ?3), substr(c.body, 1, ?3), length(c.body)"+
			" FROM (SELECT n.*, row_number() OVER (PARTITION BY n.exception_id ORDER BY n.callback_id) AS nr FROM ("+named+") AS n) AS m"+
			" JOIN callbacks AS c ON c.id = m.callback_id AND c.id > ?0 AND c.id <= ?1"+
			// A range may be checked twice.
			" WHERE m.nr + (SELECT count(*) FROM exception_callbacks AS k WHERE k.exception_id = m.exception_id AND k.callback_id <= ?0) <= ?4"+
			" ON CONFLICT DO NOTHING",
		from, to, bun.List(exception.Kinds), exception.KeptBytes, exception.KeptCallbacks).Exec(ctx)
	if err != nil {
		return fmt.Errorf("copy the callbacks of exceptions: %w", err)
	}
	return nil
}

// deleteArchived removes the copied callbacks of exceptions that ended before a moment.
func (j *Jobs) deleteArchived(ctx context.Context, ended int64) (int64, error) {
	res, err := j.o.DB.NewRaw(
		"DELETE FROM exception_callbacks WHERE exception_id IN (SELECT e.id FROM exception_callbacks AS k JOIN exceptions AS e ON e.id = k.exception_id"+
			" WHERE e.updated_at < ? AND NOT "+exception.Moves.In("e.state", exception.Moves.Open()...)+" LIMIT ?)", ended, cleanupStep).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("remove the callbacks of exceptions: %w", err)
	}
	return res.RowsAffected()
}
