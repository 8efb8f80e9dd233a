package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"

	"backstop/internal/command/bench"
)

// oldRows is how many old rows a table has at the start of a phase, per second of the phase:
// more than can be removed in that time.
const oldRows = 5000

// cleaned are the tables that grow with the orders and whose old rows are removed one by one on
// both databases.
var cleaned = []string{"deliveries", "callbacks"}

// beside are the kinds of phases: two without old rows, whose difference is the noise of the
// measurement, and one in which old rows are removed.
var beside = []string{"nothing to clean up", "nothing to clean up, again", "clean-up"}

// cleanup measures the effect of clean-up on live traffic. Old rows are added in one
// transaction just before a phase: copies of new rows with ids that are past any retention.
func cleanup(ctx context.Context, b *bench.Bench, e bench.Target) error {
	p := bench.Plan{Rates: []int{bench.SteadyRate}, Rounds: cmp.Or(b.Options.Rounds, bench.DefaultRounds), Length: b.Options.Length}
	n := p.OrdersOf(bench.SteadyRate)
	total := (1 + p.Rounds*len(beside)) * n
	s := &subject{&bench.Subject{
		Bench: b, Target: e, Cast: bench.NewCast(0), Calls: make([]bench.Post, total),
		Extra: map[string]string{"BACKSTOP_CLEANUP_EVERY": "1s"},
	}}
	end, err := s.Open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	old, err := s.openOld()
	if err != nil {
		return err
	}
	defer old.Close()
	run := &bench.Isolated{Subject: s.Subject, Plan: p}
	if _, err := run.Phase(ctx, bench.Control, bench.SteadyRate); err != nil { // also creates the rows to copy
		return fmt.Errorf("warm up: %w", err)
	}
	phases := make([][]bench.Phase, len(beside))
	var removed float64
	for round := range p.Rounds {
		for i := range beside {
			kind := (round + i) % len(beside)
			s.Progress("%s: round %d of %d, %s", s.Name, round+1, p.Rounds, beside[kind])
			cleans := kind == len(beside)-1
			if cleans {
				if err := old.add(ctx, int(p.Length.Seconds()*oldRows)); err != nil {
					return err
				}
			}
			before, err := old.count(ctx)
			if err != nil {
				return err
			}
			x, err := run.Phase(ctx, bench.Control, bench.SteadyRate)
			if err != nil {
				return fmt.Errorf("%s: %w", beside[kind], err)
			}
			phases[kind] = append(phases[kind], x)
			if !cleans {
				continue
			}
			left, err := old.count(ctx)
			if err != nil {
				return err
			}
			if left == 0 {
				b.Report.Skip(fmt.Sprintf("%s: the end of a phase, as all of %d old rows were removed before it", s.Name, before))
			}
			removed += float64(before-left) / x.Lasted.Seconds() / float64(p.Rounds)
			if err := old.remove(ctx); err != nil {
				return err
			}
		}
	}
	s.reportCleanup(phases, removed)
	return nil
}

// maxCleanup is the allowed effect on live traffic: the ratio of the 99th percentiles with and
// without clean-up. SQLite has only one writer.
func (s *subject) maxCleanup() float64 {
	if s.DatabaseURL == "" {
		return 2
	}
	return 1.2
}

func (s *subject) reportCleanup(phases [][]bench.Phase, removed float64) {
	quiet := bench.Pool(phases[0], bench.TookOf)
	for i, kind := range beside {
		l := bench.Pool(phases[i], bench.TookOf)
		s.Latency("callback in → merchant notified, 200/s, "+kind, l, 0, 0)
		if i == 0 {
			continue
		}
		goal := 0.0
		if i == len(beside)-1 {
			goal = s.maxCleanup()
		}
		s.Add("… p99, times that without", "", bench.Ratio(l.At(0.99), quiet.At(0.99)), goal)
		var rounds []float64
		for r := range phases[i] {
			with, without := bench.Pool(phases[i][r:r+1], bench.TookOf), bench.Pool(phases[0][r:r+1], bench.TookOf)
			rounds = append(rounds, bench.Ratio(with.At(0.99), without.At(0.99)))
		}
		by := bench.SpreadOf(rounds)
		s.Add(fmt.Sprintf("… by round (%.2f–%.2f), median", by.Lowest, by.Highest), "", by.Median, 0)
	}
	s.Add("old rows removed", "/s", removed, 0)
}

// oldTables makes old rows and counts them.
type oldTables struct {
	*sql.DB
	last     int // id of the newest old row
	postgres bool
}

func (s *subject) openOld() (*oldTables, error) {
	d, err := s.OpenData()
	return &oldTables{DB: d, postgres: s.DatabaseURL != ""}, err
}

// add copies a row of each table n times.
func (o *oldTables) add(ctx context.Context, n int) error {
	tx, err := o.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("add old rows: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, table := range cleaned {
		query, err := o.copies(ctx, tx, table, n)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("add old rows to %s: %w", table, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("add old rows: %w", err)
	}
	o.last += n
	return o.settle(ctx)
}

// copies returns the statement that adds the copies. References to other rows get the new id
// too, so that indexes grow as with the rows of many orders.
func (o *oldTables) copies(ctx context.Context, tx *sql.Tx, table string, n int) (string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return "", fmt.Errorf("read the columns of %s: %w", table, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", fmt.Errorf("read the columns of %s: %w", table, err)
	}
	values := make([]string, len(columns))
	for i, c := range columns {
		switch c {
		case "id", "event_id", "subject_id", "order_id":
			values[i] = "n.i"
		case "order_no":
			values[i] = "CAST(n.i AS TEXT)"
		default:
			values[i] = "t." + c
		}
	}
	return fmt.Sprintf(
		"WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO %s (%s) SELECT %s FROM n, (SELECT * FROM %[3]s ORDER BY id DESC LIMIT 1) AS t",
		o.last+1, o.last+n, table, strings.Join(columns, ", "), strings.Join(values, ", ")), rows.Err()
}

func (o *oldTables) count(ctx context.Context) (n int, err error) {
	for _, table := range cleaned {
		var of int
		if err := o.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE id <= %d", table, o.last)).Scan(&of); err != nil {
			return 0, fmt.Errorf("count the old rows of %s: %w", table, err)
		}
		n += of
	}
	return n, nil
}

// remove removes the remaining old rows, so that the next phase has none.
func (o *oldTables) remove(ctx context.Context) error {
	for _, table := range cleaned {
		if _, err := o.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE id <= %d", table, o.last)); err != nil {
			return fmt.Errorf("remove the old rows of %s: %w", table, err)
		}
	}
	return o.settle(ctx)
}

// settle does the work that adding many rows at once leaves to the database, and that a table
// which grew over months would not have: on PostgreSQL statistics and dead rows, on SQLite a
// long log.
func (o *oldTables) settle(ctx context.Context) error {
	statements := []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	if o.postgres {
		statements = []string{"VACUUM ANALYZE " + strings.Join(cleaned, ", "), "CHECKPOINT"}
	}
	for _, s := range statements {
		if _, err := o.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
