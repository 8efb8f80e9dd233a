package jobs

import (
	"context"
	"slices"
	"testing"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/breaker"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// The incident of a breaker ends with its supplier or merchant, although no event says that the
// breaker has closed; if it is enabled again and still unreachable, it goes on.
func TestAnIncidentEndsWhenItsSupplierIsDisabledOrRemoved(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		w := watcher{o: Options{DB: d, Settings: f.Settings}}
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, owner := range []recipient.Recipient{recipient.OfSupplier(f.Supplier.ID), recipient.OfMerchant(f.M1.ID)} {
			row := breaker.Row{
				OwnerID: owner.ID, OwnerKind: owner.Kind, State: breaker.Open, Generation: 1, Cause: breaker.InARow,
				UpdatedAt: 1,
			}
			if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range []struct{ rule, subject string }{
			{alert.SupplierUnreachable, f.Supplier.Code},
			{alert.SupplierUnreachable, "removed"},
			{alert.BreakerOpened, "m1"},
			{alert.BreakerOpened, "m2"},
			{alert.BooksDiffer, "books"},
		} {
			row := alert.Incident{
				ID: int64(i + 1), Rule: x.rule, Subject: x.subject, State: alert.Open, Firings: 1, OpenedAt: 5,
				FiredAt: 5, Version: 1,
			}
			if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		calm := func(want ...string) {
			t.Helper()
			if err := w.lapse(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := d.NewRaw("SELECT subject FROM incidents WHERE cleared_at IS NOT NULL ORDER BY id").Scan(t.Context(),
				&got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q are calm, want %q, %v", got, want, err)
			}
		}
		calm("removed", "m2") // m2 has no breaker that is open
		enable(t, f, false)
		calm(f.Supplier.Code, "removed", "m2")
		enable(t, f, true)
		calm("removed", "m2")
		exec("UPDATE breakers SET state = 'closed' WHERE owner_id = ?", f.M1.ID)
		calm("removed", "m1", "m2")
	})
}

// Nobody waits for a supplier that was disabled: that it is still unreachable is no news.
func TestADisabledSupplierRaisesNoAlert(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		w := watcher{o: Options{
			DB: d, Settings: f.Settings,
			Alerts: Alerts{Awaited: func(context.Context, int64) money.Totals { return nil }},
		}}
		if _, err := d.NewRaw(
			"INSERT INTO breaker_history (id, owner_id, owner_kind, generation, from_state, to_state, cause, failures, at) VALUES (1, ?, 'supplier', 1, 'closed', 'open', '', 5, 5)",
			f.Supplier.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, enabled := range []bool{false, true} {
			if _, err := d.NewRaw("UPDATE breaker_history SET alerted_at = NULL").Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			enable(t, f, enabled)
			if err := d.Tx(t.Context(), w.gather); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := d.NewRaw("SELECT count(*) FROM incidents WHERE rule = ?", alert.SupplierUnreachable).Scan(t.Context(),
				&n); err != nil || (n == 1) != enabled {
				t.Errorf("enabled = %t: %d incidents, %v", enabled, n, err)
			}
		}
	})
}

// enable changes whether the fixture's supplier is enabled.
func enable(t *testing.T, f *paymenttest.Fixture, enabled bool) {
	t.Helper()
	for _, query := range []string{
		"UPDATE suppliers SET enabled = ?0 WHERE id = ?1",
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := f.DB.NewRaw(query, enabled, f.Supplier.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}
