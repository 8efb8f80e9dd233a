package payment_test

import (
	"strings"
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/payment/paymenttest"
)

// Every statement of the hot path must find its rows by an index, or it slows
// down as the tables grow: one that scanned them took a quarter of the CPU at
// 20,000 orders.
func TestConfirmNeverScansATable(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://127.0.0.1:1/n", Batch: 1})
	o := create(t, f, nil)
	seen := &dbtest.Statements{}
	f.DB.DB = f.DB.DB.WithQueryHook(seen)
	take(t, f, f.Callback(o.OrderNo, "T1", 1999))
	take(t, f, f.Callback("unknown", "T2", 1999))
	checked := 0
	for _, q := range append(seen.Texts, f.DB.Statements()...) {
		if !strings.HasPrefix(q, "SELECT") && !strings.HasPrefix(q, "UPDATE") && !strings.HasPrefix(q, "WITH") {
			continue
		}
		checked++
		for _, line := range dbtest.Plan(t, f.DB, strings.ReplaceAll(q, "?", "NULL")) {
			table := strings.TrimPrefix(line, "SCAN ")
			if table != line && !strings.HasPrefix(table, "_") && !strings.Contains(table, "CONSTANT") &&
				!strings.Contains(table, "VIRTUAL TABLE") && table != "accounts" && table != "a" {
				t.Errorf("%s\n\tscans: %s", q, line)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d statements seen: the hook does not see the hot path", checked)
	}
}
