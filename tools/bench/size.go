package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/command/bench"
)

// sizeWave is how many orders are created before they are paid. An update leaves the old row
// behind until it is vacuumed: waves keep that space small, as in a database that has run for a
// long time.
const sizeWave = 2000

// retention is how long the rows of a table are kept; tables that are not listed keep them
// forever.
var retention = map[string]func(config.Config) time.Duration{
	"callbacks":       func(c config.Config) time.Duration { return c.RetentionCallbacks },
	"notify_attempts": func(c config.Config) time.Duration { return c.RetentionAttempts },
	"supplier_calls":  func(c config.Config) time.Duration { return c.RetentionAttempts },
	"deliveries":      func(c config.Config) time.Duration { return c.RetentionNotifications },
	"events":          func(c config.Config) time.Duration { return c.RetentionNotifications },
	"order_history":   func(c config.Config) time.Duration { return c.RetentionHistory },
}

// size measures how much disk space paid orders take, by table.
func size(ctx context.Context, b *bench.Bench, e bench.Target) error {
	s := &subject{&bench.Subject{Bench: b, Target: e, Cast: bench.NewCast(0), Calls: make([]bench.Post, b.Options.Orders)}}
	end, err := s.Open(ctx, b.Options.Orders)
	if err != nil {
		return err
	}
	defer end()
	d, err := s.OpenData()
	if err != nil {
		return err
	}
	defer d.Close()
	before, err := s.tables(ctx, d)
	if err != nil {
		return err
	}
	for from := 0; from < b.Options.Orders; from += sizeWave {
		if err := s.wave(ctx, from, min(from+sizeWave, b.Options.Orders)); err != nil {
			return err
		}
		if s.DatabaseURL == "" {
			continue
		}
		for table := range before {
			if _, err := d.ExecContext(ctx, "VACUUM "+table); err != nil {
				return fmt.Errorf("vacuum %s: %w", table, err)
			}
		}
	}
	after, err := s.tables(ctx, d)
	if err != nil {
		return err
	}
	defaults, err := config.Load(config.Source{})
	if err != nil {
		return fmt.Errorf("read the default retention: %w", err)
	}
	s.reportSizes(before, after, defaults)
	return nil
}

// wave creates and pays the orders from..to-1.
func (s *subject) wave(ctx context.Context, from, to int) error {
	if _, err := bench.ClosedLoop(ctx, bench.Connections, to-from, func(i int) error {
		return s.MakeOrder((from+i)%bench.Merchants, from+i, s.Sink.URL("/n"))
	}); err != nil {
		return fmt.Errorf("make orders: %w", err)
	}
	order := bench.PaidOrder(from, to)
	if _, err := bench.ClosedLoop(ctx, bench.Connections, to-from, func(i int) error { return s.Call(from + order[i]) }); err != nil {
		return err
	}
	notifying, cancel := context.WithTimeout(ctx, bench.NotifyTime)
	defer cancel()
	if _, err := s.Sink.Wait(notifying, from, to); err != nil {
		return err
	}
	return s.Calm(ctx)
}

// space is the disk space of a table.
type space struct {
	bytes   int64 // with its indexes
	monthly bool  // its rows are dropped by the month
}

// tables returns the space of all tables.
func (s *subject) tables(ctx context.Context, d *sql.DB) (map[string]space, error) {
	query := "SELECT m.tbl_name, sum(s.pgsize), FALSE FROM dbstat AS s JOIN sqlite_master AS m USING (name) GROUP BY 1"
	if s.DatabaseURL != "" {
		query = "SELECT r.relname, sum(pg_total_relation_size(c.oid))::bigint, r.relkind = 'p' FROM pg_class AS c" +
			" JOIN pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid::regclass)::oid" +
			" WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' GROUP BY 1, 3"
	}
	rows, err := d.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the size of the tables: %w", err)
	}
	defer rows.Close()
	all := map[string]space{}
	for rows.Next() {
		var name string
		var t space
		if err := rows.Scan(&name, &t.bytes, &t.monthly); err != nil {
			return nil, fmt.Errorf("read the size of a table: %w", err)
		}
		all[name] = t
	}
	return all, rows.Err()
}

const (
	day = 24 * time.Hour
	// minBytes is less than one row per order takes. Tables of figures, and those with few rows
	// in an installation, take less than it.
	minBytes = 16
)

// reportSizes reports the tables that grew with the orders, and the space after years.
func (s *subject) reportSizes(before, after map[string]space, c config.Config) {
	orders := float64(s.Options.Orders)
	perOrder := map[time.Duration]float64{} // bytes by how long they are kept; 0 = forever
	months := 0.0                           // bytes that stay up to a month longer
	for _, table := range slices.Sorted(maps.Keys(after)) {
		from, to := before[table], after[table]
		bytes := float64(to.bytes-from.bytes) / orders
		if bytes < minBytes {
			continue
		}
		name, keep := table+", kept forever", time.Duration(0)
		if of := retention[table]; of != nil {
			keep = of(c)
			name = fmt.Sprintf("%s, removed after %d days", table, keep/day)
		}
		if to.monthly {
			months += bytes
		}
		perOrder[keep] += bytes
		s.Add(name, "B", bytes, 0)
	}
	for _, keep := range slices.Sorted(maps.Keys(perOrder)) {
		name := "an order, kept forever"
		if keep > 0 {
			name = fmt.Sprintf("an order, removed after %d days", keep/day)
		}
		s.Add(name, "B", perOrder[keep], 0)
	}
	for _, millions := range []float64{1, 10, 100} {
		for _, years := range []int{1, 3} {
			gb := months // rows dropped by the month stay up to a month longer
			for keep, bytes := range perOrder {
				days := years * 365
				if keep > 0 {
					days = min(days, int(keep/day))
				}
				gb += bytes * float64(days) / 365 * 12
			}
			s.Add(fmt.Sprintf("%.0f million orders a month, in use after %s", millions, []string{1: "1 year", 3: "3 years"}[years]), "GB",
				gb*millions/1000, 0)
		}
		s.Add(fmt.Sprintf("%.0f million orders a month, growth per year after that", millions), "GB", perOrder[0]*12*millions/1000, 0)
	}
}
