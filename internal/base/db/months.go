package db

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/failpoint"

	"github.com/uptrace/bun"
)

// Partition is one month (UTC) of a table on PostgreSQL, so that old rows are dropped with it
// instead of being deleted one by one. The key is an id, which grows with time. On SQLite the
// table is not partitioned.
type Partition struct {
	Name string
	// From is the smallest key that it may have, math.MinInt64 for the first partition; To is the
	// first key beyond it.
	From, To int64
}

// First reports whether the partition has all keys from before the database was made.
func (p Partition) First() bool { return p.From == math.MinInt64 }

const (
	// monthsAhead is how many partitions exist beyond the current one: a row must find its
	// partition even if none has been created for a while.
	monthsAhead   = 3
	firstSuffix   = "_before"
	droppedSuffix = "_dropped"
)

// monthStart returns the first moment of the month that is n months after that of t.
func monthStart(t time.Time, n int) time.Time {
	y, m, _ := t.UTC().Date()
	return time.Date(y, m+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
}

// addMonths creates the missing partitions of the coming months.
func (d *DB) addMonths(ctx context.Context, table string) error {
	until := IDAt(monthStart(time.UnixMicro(d.Now()), monthsAhead+1).UnixMicro())
	all, err := partitions(ctx, d.Read, table)
	if err != nil || len(all) > 0 && all[len(all)-1].To >= until {
		return err
	}
	return d.changeSchema(ctx, func(ctx context.Context, tx Tx) error {
		if err := d.addFirst(ctx, tx, table); err != nil {
			return err
		}
		return attachMonths(ctx, tx, table, until)
	})
}

// addFirst creates the first partition of a table that has none: to the end of this month, and
// from any time, since rows may be imported.
func (d *DB) addFirst(ctx context.Context, tx Tx, table string) error {
	all, err := partitions(ctx, tx, table)
	if err != nil || len(all) > 0 {
		return err
	}
	_, err = tx.NewRaw("CREATE TABLE ? PARTITION OF ? FOR VALUES FROM (MINVALUE) TO (?)", bun.Ident(table+firstSuffix),
		bun.Ident(table), IDAt(monthStart(time.UnixMicro(d.Now()), 1).UnixMicro())).Exec(ctx)
	failpoint.Hit(atUpgrade)
	return err
}

// attachMonths adds partitions until there is one for each key below until. Each is created as
// a separate table, like the one before it, and then attached: unlike CREATE TABLE …
// PARTITION OF, that does not block reads and writes of the table.
func attachMonths(ctx context.Context, tx Tx, table string, until int64) error {
	all, err := partitions(ctx, tx, table)
	if err != nil || len(all) == 0 {
		return err
	}
	last := all[len(all)-1]
	for end := last.To; end < until; {
		month := time.UnixMicro(IDTime(end)).UTC()
		next := IDAt(monthStart(month, 1).UnixMicro())
		name := table + month.Format("_200601")
		if _, err := tx.NewRaw("CREATE TABLE ? (LIKE ? INCLUDING ALL)", bun.Ident(name), bun.Ident(last.Name)).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewRaw("ALTER TABLE ? ATTACH PARTITION ? FOR VALUES FROM (?) TO (?)", bun.Ident(table), bun.Ident(name), end,
			next).Exec(ctx)
		if err != nil {
			return err
		}
		failpoint.Hit(atUpgrade)
		end, last.Name = next, name
	}
	return nil
}

// Partitions lists the partitions of a table, oldest first; none if the table is not
// partitioned.
func (d *DB) Partitions(ctx context.Context, table string) ([]Partition, error) {
	if !d.postgres {
		return nil, nil
	}
	all, err := partitions(ctx, d.Read, table)
	if err != nil {
		return nil, fmt.Errorf("list the partitions of %s: %w", table, err)
	}
	return all, nil
}

// rangeBounds matches PostgreSQL's notation for the bounds of a partition.
var rangeBounds = regexp.MustCompile(`^FOR VALUES FROM \((?:MINVALUE|'(\d+)')\) TO \('(\d+)'\)$`)

func partitions(ctx context.Context, q bun.IDB, table string) ([]Partition, error) {
	var rows []struct{ Relname, Bounds string }
	err := q.NewRaw(
		"SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bounds FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"+
			" WHERE i.inhparent = to_regclass(?) AND NOT i.inhdetachpending", table).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	all := make([]Partition, len(rows))
	for i, r := range rows {
		found := rangeBounds.FindStringSubmatch(r.Bounds)
		if found == nil {
			return nil, fmt.Errorf("partition %s has the bounds %s, which this program did not make", r.Relname, r.Bounds)
		}
		all[i] = Partition{Name: r.Relname, From: math.MinInt64}
		if found[1] != "" {
			if all[i].From, err = strconv.ParseInt(found[1], 10, 64); err != nil {
				return nil, err
			}
		}
		if all[i].To, err = strconv.ParseInt(found[2], 10, 64); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Partition) int { return cmp.Compare(a.To, b.To) })
	return all, nil
}

// DropMonths drops the partitions whose keys are all below a key, and returns their names. A
// partition is renamed, detached and dropped; detaching waits for its readers and blocks no
// other session. A call that was interrupted is completed by the next one.
func (d *DB) DropMonths(ctx context.Context, table string, below int64) (dropped []string, err error) {
	if !d.postgres {
		return nil, nil
	}
	all, err := d.Partitions(ctx, table)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.To > below || strings.HasSuffix(p.Name, droppedSuffix) {
			continue
		}
		if _, err := d.NewRaw("ALTER TABLE ? RENAME TO ?", bun.Ident(p.Name), bun.Ident(p.Name+droppedSuffix)).Exec(ctx); err != nil {
			return nil, fmt.Errorf("drop %s: %w", p.Name, err)
		}
	}
	var rows []struct {
		Relname             string
		Attached, Detaching bool
	}
	err = d.NewRaw("SELECT c.relname, i.inhrelid IS NOT NULL AS attached, coalesce(i.inhdetachpending, FALSE) AS detaching"+
		" FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid"+
		" WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(?0)) AND c.relname ~ ?1 ORDER BY c.relname",
		table, "^"+table+"_(before|[0-9]{6})"+droppedSuffix+"$").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("list the partitions of %s to drop: %w", table, err)
	}
	for _, r := range rows {
		how := "CONCURRENTLY"
		if r.Detaching {
			how = "FINALIZE"
		}
		if r.Attached {
			// Neither form works inside a transaction.
			if _, err := d.NewRaw("ALTER TABLE ? DETACH PARTITION ? "+how, bun.Ident(table), bun.Ident(r.Relname)).Exec(ctx); err != nil {
				return dropped, fmt.Errorf("detach %s: %w", r.Relname, err)
			}
		}
		if _, err := d.NewRaw("DROP TABLE ?", bun.Ident(r.Relname)).Exec(ctx); err != nil {
			return dropped, fmt.Errorf("drop %s: %w", r.Relname, err)
		}
		dropped = append(dropped, strings.TrimSuffix(r.Relname, droppedSuffix))
	}
	return dropped, nil
}
