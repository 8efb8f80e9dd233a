package console

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/report"
)

// The explanation of an order whose supplier is queried comes from the rows that drive the
// queries.
func TestTheStorySaysHowASupplierIsAsked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{
			Fakes: paymenttest.NewFakes("f1"), Steps: payment.Steps{Query: []time.Duration{time.Minute}, Close: []time.Duration{0}},
		})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY",
			Supplier: "f1", Subject: "tea",
		})
		if err != nil {
			t.Fatal(err)
		}
		book := New(d, f.Settings, breaker.NewCache(d, nil))
		story := func() *Story {
			s, err := book.Story(t.Context(), o.OrderNo)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := story(); s.Asking != nil || s.Why.Rule != WhyPending {
			t.Errorf("before pay: %+v", s.Why)
		}
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		s := story()
		if s.Why.Rule != WhyAsking || s.Why.Supplier != "f1" || s.Why.At != *s.Order.NextAt || s.Why.Fired != "BACKSTOP_QUERY_STEPS" {
			t.Errorf("after pay: %+v", s.Why)
		}
		plans := map[PlanKind]int64{}
		for _, i := range s.Items {
			if i.Plan != nil {
				plans[i.Plan.Kind] = i.At
			}
		}
		if plans[PlanAsk] != *s.Order.NextAt || plans[PlanExpire] != s.Order.ExpiresAt {
			t.Errorf("plans %v", plans)
		}
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := f.Entry(t, "f1").ID
		exec("INSERT INTO supplier_calls (id, supplier_id, order_id, op, reference, state, class, status, started_at, took_us, node)"+
			" VALUES (?, ?, ?, 'query', ?, 'ended', 'timeout', 'unknown', ?, 8000000, 'n1')", d.NewID(), id, o.ID, o.OrderNo, d.Now())
		if s := story(); s.Why.Rule != WhyUnknownAnswer || len(s.Why.Evidence) == 0 ||
			s.Items[s.Why.Evidence[len(s.Why.Evidence)-1]].Call == nil {
			t.Errorf("after a timeout: %+v", s.Why)
		}
		until := d.Now() + 60_000_000
		exec("INSERT INTO breakers (owner_id, owner_kind, state, cause, failures, open_until, changed_at, updated_at) VALUES (?, 'supplier', 'open', 'failures_in_a_row', 5, ?, ?, ?)", id, until, d.Now(), d.Now())
		if s := story(); s.Why.Rule != WhySupplierDown || s.Why.At < until || s.Why.Breaker == nil {
			t.Errorf("its breaker is open: %+v", s.Why)
		}
		if rows, err := breaker.List(t.Context(), d, 0, 10); err != nil || len(rows) != 0 {
			t.Errorf("the merchants' breakers: %v, %v", rows, err)
		}
		calls := 0
		for _, i := range story().Items {
			if i.Kind() == ItemCall {
				calls++
			}
		}
		if calls != 2 {
			t.Errorf("%d calls in the story", calls)
		}
		exec("UPDATE orders SET status = ? WHERE id = ?", order.Closing, o.ID)
		exec("DELETE FROM breakers")
		if s := story(); s.Why.Fired != "BACKSTOP_CLOSE_STEPS" {
			t.Errorf("closing: %+v", s.Why)
		}
		exec("INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, from_version, state, attempts, max_attempts, last_class, made_by, opened_at)"+
			" VALUES (77, 'rerun', 'supplier_timeout', 'order', ?, ?, ?, ?, ?, 1999, 'CNY', 2, 'dead', 10, 10, 'supplier_timeout', 'stuck_paying', ?)", o.ID, o.OrderNo, o.MerchantID, id, id, d.Now())
		if s := story(); s.Why.Rule != WhyDead || s.Why.Dead.ID != 77 || s.Why.Dead.Attempts != 10 {
			t.Errorf("with a dead compensation: %+v", s.Why)
		}
		exec("UPDATE orders SET status = ? WHERE id = ?", order.Failed, o.ID)
		if s := story(); s.Why.Rule == WhyDead {
			t.Errorf("the story offers a query although the order has ended: %+v", s.Why)
		}
	})
}

// The links of alerts list exactly what the alerts count: orders without a result, and those
// waiting for a supplier.
func TestAlertsLeadToTheOrdersThatTheyCount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{
			Fakes: paymenttest.NewFakes("f1"), Steps: payment.Steps{Query: []time.Duration{time.Minute}, Close: []time.Duration{0}},
		})
		book := New(d, f.Settings, breaker.NewCache(d, nil))
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := f.Entry(t, "f1").ID
		ago := func(minutes int64) int64 { return d.Now() - minutes*60_000_000 }
		var all []*order.Order
		for range 5 {
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY",
				Supplier: "f1", Subject: "tea",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
		asked := func(o *order.Order, tries int, minutes ...int64) {
			for _, m := range minutes {
				exec("INSERT INTO supplier_calls (id, supplier_id, order_id, op, reference, state, class, status, started_at, took_us, node)"+
					" VALUES (?, ?, ?, 'query', ?, 'ended', 'timeout', 'unknown', ?, 8000000, 'n1')", d.NewID(), id, o.ID, o.OrderNo,
					ago(m))
			}
			exec("UPDATE orders SET query_tries = ?, created_at = ? WHERE id = ?", tries, ago(60*24*30), o.ID)
		}
		asked(all[0], 3, 50, 45, 31)    // stuck
		asked(all[1], 3, 50, 45, 29)    // not for so long
		asked(all[2], 2, 50, 45)        // not so often
		asked(all[3], 4, 50, 45, 31, 1) // over
		exec("UPDATE orders SET status = ? WHERE id = ?", order.Failed, all[3].ID)
		asked(all[4], 5, 90, 85, 80, 40, 2)
		exec("UPDATE orders SET status = ? WHERE id = ?", order.Closing, all[4].ID)
		check := func(word, value string, ids string, args []any, want ...*order.Order) {
			t.Helper()
			counted, err := report.CountQueried(t.Context(), d, ids, args)
			if err != nil {
				t.Fatal(err)
			}
			if n := int64(len(want)); counted.Orders != n || counted.More || len(counted.Sums) != 1 || counted.Sums[0].Minor != 1999*n ||
				counted.Sums[0].Currency != "CNY" {
				t.Errorf("%s counts %+v, want %d", word, counted, n)
			}
			page, err := book.Orders(t.Context(), list.Query{Spec: OrderList, Scope: list.All()}.With(word, value), list.Slice{})
			if err != nil || len(page.Rows) != len(want) {
				t.Fatalf("%s lists %+v, %v", word, page.Rows, err)
			}
			for _, o := range want {
				if !slices.ContainsFunc(page.Rows, func(r Order) bool { return r.OrderNo == o.OrderNo }) {
					t.Errorf("%s lacks order %s", word, o.OrderNo)
				}
			}
		}
		ids, args := report.NoResult(d.Now())
		check("no_result", "yes", ids, args, all[0], all[4])
		ids, args = report.AwaitedOf(id)
		check("awaits", "f1", ids, args, all[0], all[1], all[2], all[4])
	})
}
