package report_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
)

func TestFiguresOfSuppliersAreAddedUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		write := func(at int64, fill func(x *report.Delta)) {
			t.Helper()
			x := report.NewDelta(at)
			fill(x)
			if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				x.Write(w, d)
				return w.Exec(ctx)
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (1, 'a')").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at)" +
			" VALUES (1, 'a', 'none', 1, TRUE, '[]', '{}', 0, 0), (2, 'b', 'none', 1, TRUE, '[]', '{}', 0, 0)").Exec(
			t.Context()); err != nil {
			t.Fatal(err)
		}
		now := d.Now()
		for range 2 { // two transactions, two folds
			write(now, func(x *report.Delta) {
				x.Callback(1, "paid", 3)
				x.Refused(1, "bad_signature", 2)
				x.Refused(2, "bad_signature", 7)
				x.Call(1, "query", "ok", 80*time.Millisecond)
				x.Call(1, "query", "ok", 90*time.Millisecond)
				x.Call(1, "query", "timeout", 8*time.Second)
				x.Call(1, "close", "refused", time.Millisecond)
			})
			if _, err := report.Fold(t.Context(), d, time.UTC); err != nil {
				t.Fatal(err)
			}
		}
		write(now-2*time.Hour.Microseconds(), func(x *report.Delta) { x.Callback(1, "paid", 100) })
		if _, err := report.Fold(t.Context(), d, time.UTC); err != nil {
			t.Fatal(err)
		}
		got, err := report.SupplierOutcomes(t.Context(), d, now-time.Hour.Microseconds(), now+report.Fine.Microseconds())
		if err != nil || got[1]["paid"] != 6 || got[1]["bad_signature"] != 4 || got[2]["bad_signature"] != 14 || len(got) != 2 {
			t.Errorf("%v, %v", got, err)
		}
		calls, err := report.SupplierCalls(t.Context(), d, now-time.Hour.Microseconds())
		if err != nil || len(calls[1]) != 2 || calls[1][0].Op != "close" || calls[1][1].All() != 6 || calls[1][1].Classes["timeout"] != 2 {
			t.Fatalf("%+v, %v", calls, err)
		}
		if p95, ok := calls[1][1].Took.Quantile(0.95); !ok || p95.D <= 7*time.Second || p95.D > 8*time.Second {
			t.Errorf("p95 %v", p95)
		}
		last, err := report.LastCallbacks(t.Context(), d, []string{"bad_signature"})
		if minute := now - now%time.Minute.Microseconds(); err != nil || last[1] != minute || len(last) != 1 {
			t.Errorf("last %v, want %d, %v", last, minute, err)
		}
		if flows, err := report.Suppliers(t.Context(), d, now-time.Hour.Microseconds()); err != nil || len(flows) != 1 ||
			flows[0].Callbacks != 6 {
			t.Errorf("refused callbacks count as a supplier's flow: %+v, %v", flows, err)
		}
	})
}

func TestOrdersThatWaitAreCountedBySupplier(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		insert := func(id int64, status string, supplier int64, currency string) {
			t.Helper()
			if _, err := d.NewRaw(
				"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
					" VALUES (?0, CAST(?0 AS TEXT), 1, CAST(?0 AS TEXT), ?2, 100, ?3, 2, '', '', ?1, 1, ?4, ?4, ?4)", id, status, supplier,
				currency, d.Now()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		insert(1, "paying", 1, "CNY")
		insert(2, "closing", 1, "CNY")
		insert(3, "paying", 1, "USD")
		insert(4, "pending", 1, "CNY")
		insert(5, "paid", 1, "CNY")
		insert(6, "paying", 2, "CNY")
		// The payment of the last was started at supplier 1.
		if _, err := d.NewRaw(
			"INSERT INTO payment_attempts (id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at, supplier_id)" +
				" VALUES (9, 6, 1, 'R', '', 'submitted', 100, 0, 0, 1)").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := report.Awaiting(t.Context(), d)
		if err != nil || len(got) != 1 || got[1].Orders() != 4 || got[1].Cut {
			t.Fatalf("%+v, %v", got, err)
		}
		ids, args := report.AwaitedOf(1)
		if rows, err := report.CountQueried(t.Context(), d, ids, args); err != nil || rows.Orders != got[1].Orders() {
			t.Errorf("the list that it links to has %d orders, %v", rows.Orders, err)
		}
	})
}
