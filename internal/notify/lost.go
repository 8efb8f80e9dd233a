package notify

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// A delivery that is created as its node's claim is in no index of due rows, so that writing
// its result is a heap-only update. Nearly all end within their lease. Those that do not,
// because their node died or the result could not be stored, are found by id: ids grow with
// time.

const (
	// unindexed is the condition for open deliveries created as claimed.
	unindexed = report.Unindexed
	// checkedTo is the id up to which no such delivery is left.
	checkedTo = report.CheckedTo

	// lostPage bounds the rows per statement.
	lostPage = 5000
	// checkedEvery is how often checkedTo is advanced, to checkedMargin ago. That is longer
	// than any transaction that creates deliveries takes, so that none commits below it. Lists
	// of open deliveries read everything above it.
	checkedEvery  = 15 * time.Second
	checkedMargin = 2 * time.Minute
)

// lostClaims makes deliveries due that were created as claimed and outlived their lease. Each
// node runs its own.
//
// A delivery is read twice: by each node when its lease has ended, and by one of them before
// checkedTo passes it. The second time finds what a slow transaction has committed since, below
// the ids that the nodes had read by then.
type lostClaims struct {
	db        *db.DB
	after     time.Duration // the lease
	seen      int64         // how far this process has looked; 0 = not at all
	checkedAt int64         // when checkedTo was last advanced, as far as it knows; Unix µs
}

// ReleaseLost makes deliveries due that were created as claimed, by any node, and are still
// being sent at the end of their lease.
func (d *Dispatcher) ReleaseLost(ctx context.Context) error {
	n, err := d.lost.release(ctx)
	if n > 0 {
		d.o.Log.Info("recover", "lost_claims", n)
	}
	return err
}

// release checks what was created since the last call and is older than a lease; the first call
// checks everything above checkedTo. Every few seconds it checks again what checkedTo can pass,
// unless another node has just done so.
func (l *lostClaims) release(ctx context.Context) (released int64, err error) {
	now := l.db.Now()
	if l.seen == 0 {
		if l.seen, err = l.checked(ctx); err != nil {
			return 0, err
		}
	}
	to := db.IDAt(now - l.after.Microseconds())
	if released, err = l.pass(ctx, l.seen, to); err != nil {
		return released, err
	}
	l.seen = max(l.seen, to)
	if now-l.checkedAt < checkedEvery.Microseconds() {
		return released, nil
	}
	n, err := l.advance(ctx, now)
	return released + n, err
}

func (l *lostClaims) checked(ctx context.Context) (to int64, err error) {
	if err := l.db.Read.NewRaw(checkedTo).Scan(ctx, &to); err != nil {
		return 0, fmt.Errorf("read how far claims are checked: %w", err)
	}
	return to, nil
}

// advance checks the ids that checkedTo can pass now, and lets it pass them.
func (l *lostClaims) advance(ctx context.Context, now int64) (released int64, err error) {
	from, err := l.checked(ctx)
	if err != nil {
		return 0, err
	}
	if by := db.IDTime(from) + checkedMargin.Microseconds(); now-by < checkedEvery.Microseconds() {
		l.checkedAt = by // another node has just done so
		return 0, nil
	}
	to := db.IDAt(now - checkedMargin.Microseconds())
	if released, err = l.pass(ctx, from, to); err != nil {
		return released, err
	}
	if _, err = l.db.NewRaw("UPDATE settings SET value = ? WHERE name = 'claims_checked' AND value < ?", to, to).Exec(ctx); err != nil {
		return released, fmt.Errorf("note how far claims are checked: %w", err)
	}
	l.checkedAt = now
	return released, nil
}

// pass checks the ids after from, up to to.
func (l *lostClaims) pass(ctx context.Context, from, to int64) (released int64, err error) {
	for from < to {
		var page struct{ End, Lost int64 }
		err := l.db.Read.NewRaw("SELECT coalesce(max(id), 0) AS end, count(CASE WHEN "+unindexed+" THEN 1 END) AS lost FROM"+
			" (SELECT id, status, next_at, lease_until FROM deliveries WHERE id > ? AND id <= ? ORDER BY id LIMIT ?) AS page", from, to,
			lostPage).Scan(ctx, &page)
		if err != nil {
			return released, fmt.Errorf("look for lost claims: %w", err)
		}
		if page.End == 0 {
			return released, nil
		}
		if page.Lost > 0 {
			// The status stays: the row is claimed like any other whose lease has ended.
			res, err := l.db.NewRaw("UPDATE deliveries SET next_at = lease_until WHERE id > ? AND id <= ? AND ?", from, page.End,
				bun.Safe(unindexed)).Exec(ctx)
			if err != nil {
				return released, fmt.Errorf("release lost claims: %w", err)
			}
			n, err := res.RowsAffected()
			if err != nil {
				return released, err
			}
			released += n
		}
		from = page.End
	}
	return released, nil
}
