package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/command/bench"
)

// heldOrders is how many paid orders the database holds in the part large, and how many lines the
// merchant's account has in the part funds.
var heldOrders = 1_000_000

const (
	// copyGap is the time between the copies of an order, in ms: ids contain times.
	copyGap = 600_000
)

// held are the tables in which a paid order has rows.
var held = []string{"orders", "order_history", "payment_attempts", "callbacks", "deliveries", "events", "transfers", "journals"}

// Columns of these tables, by how a copy of a row differs in them.
var (
	movedIDs   = []string{"id", "order_id", "event_id", "subject_id", "journal_id", "transfer_id", "source_id", "paid_callback"}
	ownedTexts = []string{"out_trade_no", "supplier_trade_no", "trade_no", "supplier_ref", "ref", "event_key"}
	movedAt    = []string{"created_at", "updated_at", "expires_at", "next_at", "paid_at", "received_at", "finished_at", "first_at"}
)

// large measures bursts and steady traffic, first with an empty database and then with one that
// holds many paid orders: copies of the first ones in all tables.
func large(ctx context.Context, b *bench.Bench, e bench.Target) error {
	rounds, steady := cmp.Or(b.Options.Rounds, 3), int(b.Options.Length.Seconds())*bench.SteadyRate
	size := b.Options.Orders / rounds
	half := rounds * (steady + size)
	s := &subject{&bench.Subject{Bench: b, Target: e, Cast: bench.NewCast(0), Calls: make([]bench.Post, 2*half)}}
	end, err := s.Open(ctx, 2*half)
	if err != nil {
		return err
	}
	defer end()
	made, err := s.Create(ctx, 2*half, 0)
	if err != nil {
		return err
	}
	if made < 2*half {
		return fmt.Errorf("only %d of %d orders could be created in %s", made, 2*half, bench.CreateTime)
	}
	d, err := s.OpenData()
	if err != nil {
		return err
	}
	defer d.Close()
	phases := []string{"empty", fmt.Sprintf("%d paid orders held", heldOrders)}
	var perSecond, p99 [2][]float64
	for i, name := range phases {
		if i == 1 {
			if err := s.hold(ctx, d, half); err != nil {
				return err
			}
		}
		for round := range rounds {
			s.Progress("%s: %s, round %d of %d", s.Name, name, round+1, rounds)
			from := i*half + round*(steady+size)
			calm, err := s.Notified(ctx, bench.SteadyRate, from, steady, func(int) bool { return false })
			if err != nil {
				return err
			}
			p99[i] = append(p99[i], bench.MS(bench.Sorted(calm.Took).At(0.99)))
			part := fmt.Sprintf(", %s, round %d", name, round+1)
			if err := s.Burst(ctx, bench.Connections, part, from+steady, from+steady+size); err != nil {
				return err
			}
			perSecond[i] = append(perSecond[i], s.Report.Find(s.Name, "orders end to end"+part))
		}
	}
	for _, x := range []struct {
		name, unit string
		of         [2][]float64
	}{{"orders end to end", "/s", perSecond}, {"callback in → merchant notified, 200/s, p99", "ms", p99}} {
		var median [2]float64
		for i := range phases {
			by := bench.SpreadOf(x.of[i])
			median[i] = by.Median
			s.Add(fmt.Sprintf("%s, %s (%.4g–%.4g), median", x.name, phases[i], by.Lowest, by.Highest), x.unit, by.Median, 0)
		}
		f := bench.Figure{Group: s.Name, Name: x.name + ", times that of empty", Value: median[1] / max(median[0], 1e-9)}
		if x.unit == "ms" {
			s.Report.Add(f.AtMost(1.1))
		} else {
			s.Report.Add(f.AtLeast(0.9, "≥ 0.90"))
		}
	}
	return nil
}

// hold copies the paid orders until the database holds heldOrders of them.
func (s *subject) hold(ctx context.Context, d *sql.DB, paid int) error {
	var first int64
	if err := d.QueryRowContext(ctx, "SELECT min(id) FROM orders").Scan(&first); err != nil {
		return fmt.Errorf("find the first order: %w", err)
	}
	statements := make([]string, len(held))
	for i, table := range held {
		rows, err := d.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0") //nolint:gosec // of a list
		if err != nil {
			return fmt.Errorf("read the columns of %s: %w", table, err)
		}
		columns, err := rows.Columns()
		if err := cmp.Or(err, rows.Close()); err != nil {
			return fmt.Errorf("read the columns of %s: %w", table, err)
		}
		statements[i] = copying(table, columns, first)
	}
	copies := heldOrders / paid
	for n := 1; n <= copies; n++ {
		if n%10 == 1 {
			s.Progress("%s: %d of %d orders held", s.Name, n*paid, copies*paid)
		}
		for i, statement := range statements {
			if _, err := d.ExecContext(ctx, strings.ReplaceAll(statement, "$N", fmt.Sprint(n))); err != nil {
				return fmt.Errorf("copy rows of %s: %w", held[i], err)
			}
		}
	}
	s.Progress("%s: statistics", s.Name)
	if s.DatabaseURL == "" {
		_, err := d.ExecContext(ctx, "ANALYZE")
		return err
	}
	for _, table := range held {
		if _, err := d.ExecContext(ctx, "VACUUM ANALYZE "+table); err != nil {
			return fmt.Errorf("vacuum %s: %w", table, err)
		}
	}
	_, err := d.ExecContext(ctx, "CHECKPOINT")
	return err
}

// copying returns the statement that copies a table's rows of paid orders for the $Nth time.
func copying(table string, columns []string, first int64) string {
	shift := fmt.Sprintf("CAST($N AS BIGINT) * %d", db.IDAt(2*copyGap*1000+1_800_000_000_000_000)-db.IDAt(copyGap*1000+
		1_800_000_000_000_000))
	values := make([]string, len(columns))
	for i, c := range columns {
		switch {
		case slices.Contains(movedIDs, c): // small ids are those of accounts and the like
			values[i] = fmt.Sprintf("CASE WHEN %[1]s >= %[2]d THEN %[1]s - %[3]s ELSE %[1]s END", c, first, shift)
		case c == "order_no":
			values[i] = fmt.Sprintf("CAST(CAST(order_no AS BIGINT) - %s AS TEXT)", shift)
		case slices.Contains(ownedTexts, c):
			values[i] = fmt.Sprintf("CASE WHEN %[1]s = '' THEN '' ELSE %[1]s || '-$N' END", c)
		case slices.Contains(movedAt, c):
			values[i] = fmt.Sprintf("%s - CAST($N AS BIGINT) * %d", c, copyGap*1000)
		default:
			values[i] = c
		}
	}
	where := map[string]string{
		"orders": "id >= %d AND status = 'paid'", "journals": "id >= %d",
		"events": "id >= %d", "deliveries": "id >= %d", "callbacks": "id >= %d", "transfers": "id >= %d",
		"order_history":    "order_id >= %d AND order_id IN (SELECT id FROM orders WHERE status = 'paid')",
		"payment_attempts": "order_id >= %d AND status = 'succeeded'",
	}[table]
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM " + table +
		" WHERE " + fmt.Sprintf(where, first)
}
