package console

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
)

func TestASuppliersHealthIsThatOfItsFigures(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"})
		sp, fine := f.Supplier.ID, int64(300_000_000)
		add := func(table string, values ...any) {
			t.Helper()
			q := "INSERT INTO report_suppliers (supplier_id, start, outcome, n) VALUES (?, ?, ?, ?)"
			if table == "calls" {
				q = "INSERT INTO report_calls (supplier_id, start, op, class, bucket, n) VALUES (?, ?, ?, ?, 3, ?)"
			}
			if _, err := d.NewRaw(q, values...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		now := d.Now() / fine * fine
		week := 7 * 24 * time.Hour.Microseconds()
		add("", sp, now-fine, "paid", 60)
		add("", sp, now-fine, "repeat", 20)
		add("", sp, now-fine, "late_payment", 20)
		add("", sp, now-fine, "bad_signature", 25)
		add("", sp, now-13*fine, "paid", 999) // before the hour
		add("", sp, now-week-fine, "paid", 240)
		add("", sp, now-week-20*fine, "paid", 999) // the figures begin here
		add("calls", sp, now-fine, "query", "ok", 18)
		add("calls", sp, now-fine, "query", "timeout", 2)
		add("calls", sp, now-fine, "close", "refused", 5)
		b := New(d, f.Settings,
			breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} }))
		of := func() SupplierHealth {
			t.Helper()
			all, err := b.Suppliers(t.Context(), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				if s.ID == sp {
					return s
				}
			}
			t.Fatalf("%+v lacks the supplier", all)
			return SupplierHealth{}
		}
		s := of()
		if rate, before, known := s.PerMinute(); !known || rate != 125.0/60 || before != 4 {
			t.Errorf("%g a minute, %g before (%t)", rate, before, known)
		}
		if share, ok := s.Verified(); !ok || share != 0.8 {
			t.Errorf("%g verified", share)
		}
		if share, ok := s.PaidShare(); !ok || share != 0.75 {
			t.Errorf("%g paid", share)
		}
		if top := s.TopFailing(); top != (Failing{"bad_signature", 25}) {
			t.Errorf("fails most: %+v", top)
		}
		if share, n := s.CallsOK(); n != 25 || share != 0.92 {
			t.Errorf("%g of %d calls", share, n)
		}
		if got := s.Trouble(d.NowTime()); got != Refusing {
			t.Errorf("trouble: %s", got)
		}
		add("calls", sp, now-fine, "refund", "timeout", 10)
		if got := of().Trouble(d.NowTime()); got != CallsFail {
			t.Errorf("with failing calls: %s", got)
		}
		row := breaker.Row{
			OwnerID: sp, OwnerKind: recipient.Supplier, State: breaker.Open, Generation: 1, Cause: breaker.InARow,
			ChangedAt: now, OpenUntil: now, UpdatedAt: now,
		}
		if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := of().Trouble(d.NowTime()); got != IsUnreachable {
			t.Errorf("with an open breaker: %s", got)
		}
	})
}

func TestACertificateThatEndsSoonNeedsSomebody(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := SupplierHealth{Entry: supplier.Entry{Enabled: true}, Now: map[string]int64{"paid": 5}}
	for _, c := range []struct {
		left time.Duration
		want Trouble
	}{{ExpirySoon + time.Hour, NoTrouble}, {ExpirySoon - time.Hour, Expiring}, {-time.Hour, Expiring}} {
		s.Expires = &supplier.Key{NotAfter: now.Add(c.left)}
		if got := s.Trouble(now); got != c.want {
			t.Errorf("%s left: %s", c.left, got)
		}
	}
}

// An authentic callback failed no check: neither money that fits no order nor an event of a
// dispute, and neither did one that was turned away before it was checked.
func TestOnlyARefusedCallbackFailedACheck(t *testing.T) {
	t.Parallel()
	now := map[string]int64{"rate_limited": 400, "unavailable": 300}
	for _, outcome := range slices.Concat(payment.Outcomes, exception.Kinds) {
		now[outcome] = 200
	}
	s := SupplierHealth{Now: now}
	if top := s.TopFailing(); top.N != 0 {
		t.Errorf("fails most: %+v", top)
	}
	now["bad_signature"], now["wrong_address"] = 2, 3
	if top := s.TopFailing(); top != (Failing{"wrong_address", 3}) {
		t.Errorf("fails most: %+v", top)
	}
}
