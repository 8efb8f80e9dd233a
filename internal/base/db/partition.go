package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"backstop/internal/base/failpoint"

	"github.com/uptrace/bun"
)

// PartitionByMonth creates the partitions of the tables for the coming months. It may run on
// several nodes at once, during traffic, and again after it was killed at any point.
//
// If other sessions keep a table locked for minutes, the error is ErrInUse and lists them. The table
// stays usable with the months that it has, and a later call goes on. A table without any takes no
// rows: then the error is another one.
func (d *DB) PartitionByMonth(ctx context.Context, log *slog.Logger, tables ...string) error {
	if !d.postgres {
		return nil
	}
	for _, table := range tables {
		if err := d.waitForLocks(ctx, log, table, d.addMonths); err != nil {
			if all, readErr := partitions(ctx, d.Read, table); errors.Is(err, ErrInUse) && readErr == nil && len(all) == 0 {
				return fmt.Errorf("partition %s by month: it has none yet: %v", table, err)
			}
			return fmt.Errorf("partition %s by month: %w", table, err)
		}
	}
	return nil
}

// ErrInUse means that other sessions kept a table locked longer than a change of it waits.
var ErrInUse = errors.New("the table is in use")

// lockPatience is how long one step waits for the locks of others. firstLockWait is the wait
// between its first two tries; it doubles up to maxLockWait.
var (
	lockPatience  = 2 * time.Minute
	firstLockWait = 250 * time.Millisecond
)

const maxLockWait = 15 * time.Second

// waitForLocks repeats a step while others hold a lock that it needs.
func (d *DB) waitForLocks(ctx context.Context, log *slog.Logger, table string, step func(context.Context, string) error) error {
	end := time.Now().Add(lockPatience)
	for wait := firstLockWait; ; wait = min(2*wait, maxLockWait) {
		err := step(ctx, table)
		failpoint.Hit(atUpgrade)
		if !IsConflict(err) {
			return err
		}
		holders, readErr := lockHolders(ctx, d.Read, table)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if time.Now().Add(wait).After(end) {
			return fmt.Errorf("%w: %s: %w", ErrInUse, holders, err)
		}
		log.Info("partition by month: waiting for a lock", "table", table, "holders", holders)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// lockHolders describes the sessions with locks on a table or on schema changes, the oldest
// transactions first: transactions of traffic end in milliseconds. Their queries are without values.
func lockHolders(ctx context.Context, q bun.IDB, table string) (string, error) {
	var all []string
	err := q.NewRaw(`
SELECT format('process %s of %s (%s) for %s: %s', a.pid, a.usename, coalesce(a.state, 'unknown'), date_trunc('second', clock_timestamp() - a.xact_start),
	left(regexp_replace(a.query, '''[^'']*(''|$)|[0-9]+', '#', 'g'), 200))
FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN (SELECT l.pid FROM pg_locks l WHERE l.granted AND
	(l.locktype = 'relation' AND l.relation = to_regclass(?) AND l.mode <> 'AccessShareLock' OR l.locktype = 'advisory' AND l.classid = 0 AND l.objid = ?
	OR l.locktype = 'relation' AND l.relation = to_regclass(?) AND a.xact_start < clock_timestamp() - INTERVAL '2 seconds'))
ORDER BY a.xact_start LIMIT 3`, table, migrationLock, table).Scan(ctx, &all)
	if err != nil {
		return "", fmt.Errorf("find who locks %s: %w", table, err)
	}
	if len(all) == 0 {
		return "no session holds the lock any more", nil
	}
	return strings.Join(all, "; "), nil
}
