package main

import (
	"testing"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/command/bench"
)

// Rows that PostgreSQL drops by the month are removed some day: without a retention here they
// would count as kept forever.
func TestEachMonthlyTableHasItsRetention(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var tables []string
	err := d.NewRaw("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'p'").Scan(t.Context(),
		&tables)
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		if retention[table] == nil {
			t.Errorf("%s has no entry in retention", table)
		}
	}
}

func TestSizesAddUpOverTheYears(t *testing.T) {
	t.Parallel()
	s := &subject{&bench.Subject{
		Bench: &bench.Bench{Options: bench.Options{Orders: 10}, Report: &bench.Report{}}, Target: bench.Target{Name: "x"},
	}}
	c := config.Config{RetentionCallbacks: 73 * day, RetentionHistory: 730 * day, RetentionAttempts: time.Hour}
	s.reportSizes(map[string]space{"orders": {bytes: 1000}}, map[string]space{
		"orders":        {bytes: 11_500},
		"callbacks":     {bytes: 4000, monthly: true},
		"order_history": {bytes: 1000},
		"figures":       {bytes: 90},
	}, c)
	for name, want := range map[string]float64{
		"orders, kept forever":                  1050,
		"an order, kept forever":                1050,
		"callbacks, removed after 73 days":      400,
		"order_history, removed after 730 days": 100,
		// 12 months of orders and history, and 2.4 + 1 of callbacks.
		"1 million orders a month, in use after 1 year":          12*1.05 + 12*0.1 + 3.4*0.4,
		"1 million orders a month, in use after 3 years":         36*1.05 + 24*0.1 + 3.4*0.4,
		"100 million orders a month, growth per year after that": 1260,
	} {
		if got := s.Report.Find("x", name); got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	if s.Report.Find("x", "figures, kept forever") != 0 {
		t.Error("what does not grow with the orders is reported")
	}
}
