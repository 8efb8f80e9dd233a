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
type lostClaims struct {
	db        *db.DB
	after     time.Duration // the lease
	seen      int64         // how far this process has looked
	checkedAt int64         // when it advanced checkedTo, Unix µs
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

// release checks what was created since the last call and is older than a lease. Every few
// seconds it checks everything above checkedTo again, which a transaction may have committed
// since, and advances checkedTo.
func (l *lostClaims) release(ctx context.Context) (released int64, err error) {
	now := l.db.Now()
	to := db.IDAt(now - l.after.Microseconds())
	if now-l.checkedAt < checkedEvery.Microseconds() {
		released, err = l.pass(ctx, l.seen, to)
	} else {
		released, err = l.checkAll(ctx, now, to)
	}
	if err == nil {
		l.seen = max(l.seen, to)
	}
	return released, err
}

func (l *lostClaims) checkAll(ctx context.Context, now, to int64) (released int64, err error) {
	var from int64
	if err := l.db.Read.NewRaw(checkedTo).Scan(ctx, &from); err != nil {
		return 0, fmt.Errorf("read how far claims are checked: %w", err)
	}
	if released, err = l.pass(ctx, from, to); err != nil {
		return released, err
	}
	checked := db.IDAt(now - checkedMargin.Microseconds())
	if checked > from {
		if _, err := l.db.NewRaw("UPDATE settings SET value = ? WHERE name = 'claims_checked' AND value < ?", checked,
			checked).Exec(ctx); err != nil {
			return released, fmt.Errorf("note how far claims are checked: %w", err)
		}
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
