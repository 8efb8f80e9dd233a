package app

import (
	"reflect"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/settings"
)

func TestAMerchantsBreakerHasItsOwnRules(t *testing.T) {
	t.Parallel()
	all := breaker.Policy{Failures: 5, Open: 300 * time.Second, RatePercent: 80, Window: time.Minute, MinSamples: 20}
	none := all
	none.RatePercent = 0
	for name, c := range map[string]struct {
		own  merchant.Breaker
		want breaker.Policy
	}{
		"none": {merchant.Breaker{}, all},
		"each": {
			merchant.Breaker{Failures: 3, OpenMS: 2000, RatePercent: 50, WindowMS: 1000, MinSamples: 7},
			breaker.Policy{Failures: 3, Open: 2 * time.Second, RatePercent: 50, Window: time.Second, MinSamples: 7},
		},
		"no rate": {merchant.Breaker{RatePercent: merchant.NoRate}, none},
	} {
		if got := ownPolicy(all, c.own); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The alert about a breaker is read from its row, its history and what waits.
func TestAnOpenedBreakerIsReadWithWhatWaits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := &App{db: d, settings: settings.NewStore(d, nil, nil, nil)}
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exec("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm1', 'Galaxy', '[]', '{}', 0, 0)")
		if err := a.settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o, err := a.openedBreaker(t.Context(), "m1"); o != nil || err != nil {
			t.Errorf("one that never opened: %+v, %v", o, err)
		}
		exec("INSERT INTO breakers (owner_id, state, generation, failures, changed_at, open_until, updated_at) VALUES (1, 'open', 3, 5, 900, 1200, 900)")
		for i, c := range [][]any{
			{"closed", "open", "by_hand", 0, "operator:li", "they move", 100},
			{"open", "closed", "by_hand", 0, "operator:li", "", 200},
			{"closed", "open", "failures_in_a_row", 5, "", "", 300},
			{"open", "half_open", "probe_due", 5, "", "", 600},
			{"half_open", "open", "probe_failed", 5, "", "", 900},
		} {
			exec("INSERT INTO breaker_history (id, owner_id, generation, from_state, to_state, cause, failures, actor, reason, at) VALUES (?, 1, 1, ?, ?, ?, ?, ?, ?, ?)", append([]any{i + 1}, c...)...)
		}
		for i, x := range []struct {
			event    int
			currency string
			amount   int
			next     any
		}{{1, "CNY", 100, 1}, {1, "CNY", 100, 1}, {2, "CNY", 250, 1}, {3, "HKD", 7, 1}, {4, "", 0, 1}, {5, "CNY", 9999, nil}} {
			exec("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at, currency, amount)"+
				" VALUES (?, ?, 1, 1, 'order.paid', 'webhook', '', 'retry_wait', ?, 0, ?, ?)", i+1, x.event, x.next, x.currency, x.amount)
		}
		o, err := a.openedBreaker(t.Context(), "m1")
		want := alert.Opened{
			Merchant: "m1", Name: "Galaxy", Failures: 5, Since: 300, ProbeAt: 1200,
			Waiting: []alert.Waits{
				{Currency: "", Count: 1},
				{Currency: "CNY", Count: 2, Minor: 350},
				{Currency: "HKD", Count: 1, Minor: 7},
			},
		}
		if err != nil || !reflect.DeepEqual(*o, want) {
			t.Errorf("%+v, %v; want %+v", o, err, want)
		}
		exec("DELETE FROM breaker_history WHERE id > 1")
		exec("UPDATE breakers SET by_hand = TRUE, open_until = 0")
		if o, err := a.openedBreaker(t.Context(), "m1"); err != nil || o.ByHand != "li" || o.Reason != "they move" || o.ProbeAt != 0 {
			t.Errorf("by hand: %+v, %v", o, err)
		}
	})
}
