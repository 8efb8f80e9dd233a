package bench

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"
)

const (
	defaultHeld = 1_000_000
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
func (b *bench) large(ctx context.Context, e engine) error {
	rounds, steady := cmp.Or(b.o.Rounds, 3), int(b.o.Length.Seconds())*steadyRate
	size := b.o.Orders / rounds
	half := rounds * (steady + size)
	s := &subject{bench: b, engine: e, cast: newCast(0), calls: make([]post, 2*half)}
	end, err := s.open(ctx, 2*half)
	if err != nil {
		return err
	}
	defer end()
	made, err := s.create(ctx, 2*half, 0)
	if err != nil {
		return err
	}
	if made < 2*half {
		return fmt.Errorf("only %d of %d orders could be created in %s", made, 2*half, createTime)
	}
	d, err := s.openData()
	if err != nil {
		return err
	}
	defer d.Close()
	phases := []string{"empty", fmt.Sprintf("%d paid orders held", b.o.Held)}
	var perSecond, p99 [2][]float64
	for i, name := range phases {
		if i == 1 {
			if err := s.hold(ctx, d, half); err != nil {
				return err
			}
		}
		for round := range rounds {
			s.progress("%s: %s, round %d of %d", s.name, name, round+1, rounds)
			from := i*half + round*(steady+size)
			calm, err := s.notified(ctx, steadyRate, from, steady, func(int) bool { return false })
			if err != nil {
				return err
			}
			p99[i] = append(p99[i], ms(sorted(calm.took).at(0.99)))
			part := fmt.Sprintf(", %s, round %d", name, round+1)
			if err := s.burst(ctx, connections, part, from+steady, from+steady+size); err != nil {
				return err
			}
			perSecond[i] = append(perSecond[i], s.report.find(s.name, "orders end to end"+part))
		}
	}
	for _, x := range []struct {
		name, unit string
		of         [2][]float64
	}{{"orders end to end", "/s", perSecond}, {"callback in → merchant notified, 200/s, p99", "ms", p99}} {
		var median [2]float64
		for i := range phases {
			by := spreadOf(x.of[i])
			median[i] = by.Median
			s.add(fmt.Sprintf("%s, %s (%.4g–%.4g), median", x.name, phases[i], by.Lowest, by.Highest), x.unit, by.Median, 0)
		}
		f := figure{Group: s.name, Name: x.name + ", times that of empty", Value: median[1] / max(median[0], 1e-9)}
		if x.unit == "ms" {
			s.report.add(f.atMost(1.1))
		} else {
			s.report.add(f.atLeast(0.9, "≥ 0.90"))
		}
	}
	return nil
}

// hold copies the paid orders until the database holds o.Held of them.
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
	copies := s.o.Held / paid
	for n := 1; n <= copies; n++ {
		if n%10 == 1 {
			s.progress("%s: %d of %d orders held", s.name, n*paid, copies*paid)
		}
		for i, statement := range statements {
			if _, err := d.ExecContext(ctx, strings.ReplaceAll(statement, "$N", fmt.Sprint(n))); err != nil {
				return fmt.Errorf("copy rows of %s: %w", held[i], err)
			}
		}
	}
	s.progress("%s: statistics", s.name)
	if s.databaseURL == "" {
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
