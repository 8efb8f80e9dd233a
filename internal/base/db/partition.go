package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/failpoint"

	"github.com/uptrace/bun"
)

// PartitionByMonth converts the tables to partitioned ones and creates their partitions for
// the coming months. It may run on several nodes at once, during traffic, and again after it
// was killed at any point.
//
// Nothing is copied. A check constraint, that all keys are below the end of a month, is added
// unvalidated and then validated, which reads the table but blocks no other session. With it,
// the table becomes the first partition of a new table with its name within milliseconds.
//
// If other sessions keep a table locked for minutes, the error is ErrInUse and lists them. The
// table stays usable as it is; a later call converts it.
func (d *DB) PartitionByMonth(ctx context.Context, log *slog.Logger, tables ...Monthly) error {
	if !d.postgres {
		return nil
	}
	for _, m := range tables {
		steps := []func(context.Context, Monthly) error{
			d.boundTable, func(ctx context.Context, m Monthly) error { return d.checkRows(ctx, log, m) }, d.splitTable, d.addMonths,
		}
		done, err := isPartitioned(ctx, d.Read, m.Table)
		if done {
			steps = steps[3:]
		}
		for i := 0; err == nil && i < len(steps); i++ {
			err = d.waitForLocks(ctx, log, m, steps[i])
		}
		if err != nil {
			return fmt.Errorf("partition %s by month: %w", m.Table, err)
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
func (d *DB) waitForLocks(ctx context.Context, log *slog.Logger, m Monthly, step func(context.Context, Monthly) error) error {
	end := time.Now().Add(lockPatience)
	for wait := firstLockWait; ; wait = min(2*wait, maxLockWait) {
		err := step(ctx, m)
		failpoint.Hit(atUpgrade)
		if !IsConflict(err) {
			return err
		}
		holders, readErr := lockHolders(ctx, d.Read, m.Table)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if time.Now().Add(wait).After(end) {
			return fmt.Errorf("%w: %s: %w", ErrInUse, holders, err)
		}
		log.Info("partition by month: waiting for a lock", "table", m.Table, "holders", holders)
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

// isPartitioned reports whether the table is already partitioned.
func isPartitioned(ctx context.Context, q bun.IDB, table string) (done bool, err error) {
	err = q.NewRaw("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(?)", table).Scan(ctx, &done)
	return done, err
}

// bound is the check constraint that allows a table to become the first partition.
type bound struct {
	name  string
	below int64
	valid bool
}

// readBound returns the table's bound, or nil if it has none. The name of the constraint ends
// with the first key beyond it.
func readBound(ctx context.Context, tx Tx, table string) (*bound, error) {
	var rows []struct {
		Conname      string
		Convalidated bool
	}
	prefix := table + "_below_"
	err := tx.NewRaw(
		"SELECT conname, convalidated FROM pg_constraint WHERE conrelid = to_regclass(?) AND contype = 'c' AND starts_with(conname::text, ?)",
		table, prefix).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	below, err := strconv.ParseInt(strings.TrimPrefix(rows[0].Conname, prefix), 10, 64)
	return &bound{rows[0].Conname, below, rows[0].Convalidated}, err
}

// boundTable adds the bound. The bound of a conversion that has waited for long is replaced a
// day before its end, from which on it would refuse new rows.
func (d *DB) boundTable(ctx context.Context, m Monthly) error {
	return d.changeSchema(ctx, func(ctx context.Context, tx Tx) error { return d.addBound(ctx, tx, m) })
}

func (d *DB) addBound(ctx context.Context, tx Tx, m Monthly) error {
	if done, err := isPartitioned(ctx, tx, m.Table); done || err != nil {
		return err
	}
	b, err := readBound(ctx, tx, m.Table)
	if err != nil {
		return err
	}
	now := time.UnixMicro(d.Now())
	if b != nil {
		if b.below > IDAt(now.Add(24*time.Hour).UnixMicro()) {
			return nil
		}
		if _, err := tx.NewRaw("ALTER TABLE ? DROP CONSTRAINT ?", bun.Ident(m.Table), bun.Ident(b.name)).Exec(ctx); err != nil {
			return err
		}
	}
	end := monthStart(now, 1)
	if end.Sub(now) < minMonthAhead {
		end = monthStart(now, 2)
	}
	below := IDAt(end.UnixMicro())
	_, err = tx.NewRaw("ALTER TABLE ? ADD CONSTRAINT ? CHECK (? < ?) NOT VALID", bun.Ident(m.Table),
		bun.Ident(fmt.Sprintf("%s_below_%d", m.Table, below)), bun.Ident(m.Key), below).Exec(ctx)
	failpoint.Hit(atUpgrade)
	return err
}

// largeTable is the size in bytes from which on the check of a table's rows is logged.
var largeTable int64 = 64 << 20

// checkEvery is how often the progress of that check is logged.
var checkEvery = 10 * time.Second

// checkRows validates the bound and logs its progress.
func (d *DB) checkRows(ctx context.Context, log *slog.Logger, m Monthly) error {
	var size int64
	if err := d.Read.NewRaw("SELECT pg_table_size(to_regclass(?))", m.Table).Scan(ctx, &size); err != nil {
		return fmt.Errorf("read its size: %w", err)
	}
	if size < largeTable {
		return d.validateBound(ctx, m)
	}
	start := time.Now()
	log.Info("partition by month: checking all rows once, without blocking traffic", "table", m.Table, "megabytes", size>>20)
	ended, logged := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(logged)
		for {
			select {
			case <-ended:
				return
			case <-time.After(checkEvery):
				log.Info("partition by month: still checking rows", "table", m.Table, "megabytes", size>>20, "seconds",
					int(time.Since(start).Seconds()))
			}
		}
	}()
	err := d.validateBound(ctx, m)
	close(ended)
	<-logged
	return err
}

// validateBound reads the whole table without blocking traffic. One of several nodes does so,
// and the others wait for its lock.
func (d *DB) validateBound(ctx context.Context, m Monthly) error {
	return d.Tx(ctx, func(ctx context.Context, tx Tx) error {
		if done, err := isPartitioned(ctx, tx, m.Table); done || err != nil {
			return err
		}
		b, err := readBound(ctx, tx, m.Table)
		if err != nil || b == nil || b.valid {
			return err
		}
		if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		_, err = tx.NewRaw("ALTER TABLE ? VALIDATE CONSTRAINT ?", bun.Ident(m.Table), bun.Ident(b.name)).Exec(ctx)
		return err
	})
}

// splitTable puts a partitioned table in the place of the old one, which becomes its
// first partition with all its rows and indexes.
func (d *DB) splitTable(ctx context.Context, m Monthly) error {
	return d.changeSchema(ctx, func(ctx context.Context, tx Tx) error { return d.split(ctx, tx, m) })
}

func (d *DB) split(ctx context.Context, tx Tx, m Monthly) error {
	if done, err := isPartitioned(ctx, tx, m.Table); done || err != nil {
		return err
	}
	b, err := readBound(ctx, tx, m.Table)
	switch {
	case err != nil:
		return err
	case b == nil || !b.valid:
		return errors.New("its bound is not valid: another program is changing the table at the same time")
	}
	table, first := bun.Ident(m.Table), bun.Ident(m.Table+firstSuffix)
	if _, err := tx.NewRaw("LOCK TABLE ? IN ACCESS EXCLUSIVE MODE", table).Exec(ctx); err != nil {
		return err
	}
	shape, err := readShape(ctx, tx, m, b.name)
	if err != nil {
		return err
	}
	statements := append([]string{}, shape.rename...)
	statements = append(statements,
		d.QueryGen().FormatQuery("ALTER TABLE ? RENAME TO ?", table, first),
		d.QueryGen().FormatQuery("CREATE TABLE ? (LIKE ? INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMMENTS) PARTITION BY RANGE (?)",
			table, first, bun.Ident(m.Key)))
	statements = append(statements, shape.create...)
	statements = append(statements,
		d.QueryGen().FormatQuery("ALTER TABLE ? ATTACH PARTITION ? FOR VALUES FROM (MINVALUE) TO (?)", table, first, b.below),
		d.QueryGen().FormatQuery("ALTER TABLE ? DROP CONSTRAINT ?", first, bun.Ident(b.name)))
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		failpoint.Hit(atUpgrade)
	}
	return nil
}

// shape is the constraints, indexes and grants of a table: statements that rename them, since
// names of indexes are unique in a schema, and statements that create them again. Checks keep
// their names, by which PostgreSQL matches those of a partition with those of the table.
type shape struct{ rename, create []string }

// readShape reads the shape from the catalogue. A primary key that does not contain the
// partition key cannot be a key of the whole table; it is left out.
func readShape(ctx context.Context, tx Tx, m Monthly, bound string) (s shape, err error) {
	var parts []struct {
		Rename, Create string
	}
	err = tx.NewRaw(`
SELECT CASE WHEN c.contype <> 'c' THEN format('ALTER TABLE %I RENAME CONSTRAINT %I TO %I', ?0, c.conname, c.conname || ?2) ELSE '' END AS rename,
       CASE WHEN c.contype = 'p' AND NOT k.attnum = ANY (c.conkey) THEN '' ELSE
           format('ALTER TABLE %I ADD CONSTRAINT %I %s', ?0, c.conname, pg_get_constraintdef(c.oid)) END AS create
FROM pg_constraint c JOIN pg_attribute k ON k.attrelid = c.conrelid AND k.attname = ?1
WHERE c.conrelid = to_regclass(?0) AND c.conname <> ?3 AND c.contype IN ('p', 'u', 'c')
UNION ALL
SELECT format('ALTER INDEX %I RENAME TO %I', r.relname, r.relname || ?2), pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class r ON r.oid = i.indexrelid
WHERE i.indrelid = to_regclass(?0) AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
UNION ALL
SELECT '', format('GRANT %s ON %I TO %s%s', a.privilege_type, ?0, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
       CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class r, aclexplode(r.relacl) a WHERE r.oid = to_regclass(?0) AND a.grantee <> r.relowner`,
		m.Table, m.Key, firstSuffix, bound).Scan(ctx, &parts)
	if err != nil {
		return s, fmt.Errorf("read its constraints and indexes: %w", err)
	}
	for _, p := range parts {
		if p.Rename != "" {
			s.rename = append(s.rename, p.Rename)
		}
		if p.Create != "" {
			s.create = append(s.create, p.Create)
		}
	}
	return s, nil
}
