package compensation

import (
	"context"
	"fmt"
	"math"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/work"

	"github.com/uptrace/bun"
)

// source provides the items as work.
type source struct{ db *db.DB }

// dueQuery reads the due items of a lane.
const dueQuery = "SELECT id, lane, next_at AS at FROM compensations WHERE lane = ? AND next_at <= ? ORDER BY next_at LIMIT ?"

func (s *source) Due(ctx context.Context, lane, now int64, n int) (jobs []work.Job, err error) {
	err = s.db.Read.NewRaw(dueQuery, lane, now+work.LookAhead.Microseconds(), n).Scan(ctx, &jobs)
	return jobs, err
}

// claimQuery finds rows by id alone: a planner that sees that only due rows can match would
// scan all of them.
var claimQuery = "UPDATE compensations SET state = ?, attempts = attempts + 1, lease_owner = ?, lease_until = ?, next_at = ?" +
	" WHERE id IN (?) AND coalesce(next_at, ?) <= ? AND " + Moves.In("state", Moves.From(Running)...) + " RETURNING *"

// Claim counts the try and writes the lease before anything is done. An item whose lease has
// ended is due again.
func (s *source) Claim(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[*Item], error) {
	of := make(map[int64]work.Slot, len(slots))
	ids := make([]int64, len(slots))
	for i, x := range slots {
		of[x.ID], ids[i] = x, x.ID
	}
	var rows []*Item
	// Not by AsyncCommitTx: a claim lost in a crash would not count the try.
	err := s.db.SharedTx(ctx, func(ctx context.Context, tx db.Tx) error {
		rows = nil
		return tx.NewRaw(claimQuery, Running, l.Owner, l.Until, l.Until, bun.List(ids), math.MaxInt64, s.db.Now()).Scan(ctx, &rows)
	})
	if err != nil {
		return nil, fmt.Errorf("claim compensations: %w", err)
	}
	failpoint.Hit("compensation_claim")
	all := make([]work.Claimed[*Item], len(rows))
	for i, x := range rows {
		all[i] = work.Claimed[*Item]{Slot: of[x.ID], Row: x}
	}
	return all, nil
}

// Release undoes a claim without counting a try.
func (s *source) Release(ctx context.Context, x *Item, at int64) error {
	_, err := s.db.NewRaw("UPDATE compensations SET state = ?, attempts = attempts - 1, next_at = ?, lease_owner = 0, lease_until = 0"+
		" WHERE id = ? AND state = ? AND lease_owner = ? AND attempts = ?", Waiting, at, x.ID, Running, s.db.Boot(), x.Attempts).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release a compensation: %w", err)
	}
	return nil
}

// DueLanes lists at most limit lanes after the given one that have an item due about now.
func DueLanes(ctx context.Context, d *db.DB, after int64, limit int) (lanes []int64, last int64, err error) {
	return work.DueLanes(ctx, d, "compensations", "lane", after, limit)
}

// ReleaseLeases makes the items due again that were claimed by boots that have ended. Their
// tries stay counted, because they may have had an effect.
func ReleaseLeases(ctx context.Context, d *db.DB, boots []int64) (int64, error) {
	if len(boots) == 0 {
		return 0, nil
	}
	res, err := d.NewRaw(
		"UPDATE compensations SET state = ?, next_at = ?, lease_owner = 0, lease_until = 0 WHERE state = ? AND lease_owner IN (?)",
		Waiting, d.Now(), Running, bun.List(boots)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("release compensations of earlier runs: %w", err)
	}
	return res.RowsAffected()
}
