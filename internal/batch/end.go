package batch

import (
	"cmp"
	"context"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// failing returns the cause for which too many of the last rows failed; "" = none.
func failing(ctx context.Context, tx db.Tx, id, last int64) (string, error) {
	var causes []string
	err := tx.NewRaw(
		"SELECT cause FROM batch_rows WHERE batch_id = ? AND number > ? AND number <= ? AND state = ? GROUP BY cause HAVING count(*) >= ? ORDER BY count(*) DESC, cause LIMIT 1",
		id, last-lastRows, last, RowFailed, mostFailed).Scan(ctx, &causes)
	if err != nil {
		return "", fmt.Errorf("read why rows of a batch failed: %w", err)
	}
	if len(causes) == 0 {
		return "", nil
	}
	return cmp.Or(causes[0], "unknown"), nil
}

// finish ends a batch in its own transaction. Errors: errLost if it was ended or paused
// meanwhile.
func (b *Batches) finish(ctx context.Context, x *Batch, state State, because string) error {
	return b.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		ended, err := b.end(ctx, tx, x, state, because)
		if err == nil && !ended {
			err = errLost
		}
		return err
	})
}

// end ends a running batch, once, and records this in the audit; false = it is no longer
// running.
func (b *Batches) end(ctx context.Context, tx db.Tx, x *Batch, state State, because string) (bool, error) {
	res, err := tx.NewRaw(
		"UPDATE batches SET state = ?, version = version + 1, stopped_because = ?, finished_at = ?, lease_owner = 0, lease_until = 0 WHERE id = ? AND version = ? AND state IN (?)",
		state, because, b.o.DB.Now(), x.ID, x.Version, bun.List(Moves.From(state, Running))).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("end a batch: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	details := map[string]any{
		"state": state, "rows": x.Ended(), "done": x.Result.Count(string(RowDone), string(act.Waits)),
		"amounts": x.Result.Ran(),
	}
	if because != "" {
		details["because"] = because
	}
	return true, b.o.Audit.Write(ctx, tx, audit.Act{Actor: x.MadeBy, Action: EndAct, Object: Object, ObjectID: x.No(), Params: details})
}

// isAway reports whether the amount still to be processed has drifted from what was shown.
func (b *Batches) isAway(ctx context.Context, k *act.Kind, x *Batch) (bool, error) {
	drift := x.Drift.clone()
	for from := x.ProcessedTo; from < x.ToDo; from += loadRows {
		var rows []Row
		err := b.o.DB.Read.NewSelect().Model(&rows).Where("br.batch_id = ?", x.ID).Where("br.number > ?", from).Where("br.number <= ?",
			min(from+loadRows, x.ToDo)).
			Where("br.state = ?", RowWaiting).Scan(ctx)
		if err != nil {
			return false, fmt.Errorf("read the rows of a batch: %w", err)
		}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ObjectID
		}
		found, err := load(ctx, b.o.DB.Read, k, ids)
		if err != nil {
			return false, err
		}
		of := make(map[int64]*act.Subject, len(found))
		for i := range found {
			of[found[i].Row] = &found[i]
		}
		for i := range rows {
			drift.moved(&rows[i], of[rows[i].ObjectID])
		}
	}
	return drifted(x.Planned.Acts(), drift.Sums("")), nil
}
