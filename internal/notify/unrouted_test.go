package notify_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/report"
)

// TestWhatIsDueToARowThatCannotBeReadIsRoutedAfterwards takes money of a merchant whose
// row cannot be read, and repairs the row in different ways: each event ends where the
// row then says, by a first attempt, and no money is left in the figures.
func TestWhatIsDueToARowThatCannotBeReadIsRoutedAfterwards(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10}})
		subscribe(t, f, "erp")
		good := f.M1.Settings
		ch := newHosts()
		disp := notify.NewDispatcher(notify.Options{
			DB: d, Directory: f.Settings.Merchants, Channels: map[string]notify.Channel{notify.Webhook: ch, "bus": ch}, Nudger: f.Nudger,
			Breakers: newBreakers(f, never), Concurrency: 10, Timeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(func() { stop(disp, 5*time.Second) })
		repair := func(table string, s merchant.Settings) {
			t.Helper()
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			reconfigure(t, f, "UPDATE "+table+" SET notify = ?", string(raw))
		}
		poisoned := func() {
			t.Helper()
			for _, table := range []string{"merchants", "subscriptions"} {
				reconfigure(t, f, "UPDATE "+table+" SET notify = ?", `"{"`)
			}
			before := ch.got("")
			nudges := paid(t, f, 2)
			disp.Offer(nudges)
			disp.Pull([]int64{f.M1.ID})
			waittest.Stays(t, "nothing goes to recipients whose rows cannot be read", 300*time.Millisecond, func() bool {
				return ch.got("") == before
			})
			if n := f.Count(t,
				"SELECT count(*) FROM deliveries WHERE channel = 'unrouted' AND attempts = 0 AND status = 'queued'"); n != 4 {
				t.Fatalf("%d deliveries wait, want 4", n)
			}
		}
		erp := merchant.Settings{URLs: []string{"http://erp.test/e"}, Ack: "status", WaitsMS: []int64{10}, TimeoutMS: 2000, MaxInFlight: 5}

		// Two addresses that are both notified, neither of them a webhook.
		poisoned()
		both := good
		both.URLs, both.Balance = nil, merchant.All
		both.Endpoints = []merchant.Endpoint{
			{Name: "one", Channel: "bus", URL: "bus://one.test", Weight: 1},
			{Name: "two", Channel: "bus", URL: "bus://two.test", Weight: 1},
		}
		repair("merchants", both)
		repair("subscriptions", erp)
		drain(t, f, disp)
		if ch.got("one.test") != 2 || ch.got("two.test") != 2 || ch.got("erp.test") != 2 {
			t.Errorf("notified %d, %d and %d times", ch.got("one.test"), ch.got("two.test"), ch.got("erp.test"))
		}

		// Neither subscribes to such events any more, or follows the merchant.
		poisoned()
		off := good
		off.Events = []string{"order.failed"}
		repair("merchants", off)
		reconfigure(t, f, "UPDATE subscriptions SET merchants = ?", `["m2"]`)
		repair("subscriptions", erp)
		drain(t, f, disp)
		if n := ch.got(""); n != 6 {
			t.Errorf("%d messages in all: a recipient was notified that must not be", n)
		}
		if n := f.Count(t,
			"SELECT count(*) FROM deliveries WHERE status = 'skipped' AND last_class = 'switched_off' AND attempts = 0"); n != 4 {
			t.Errorf("%d deliveries are skipped, want 4", n)
		}
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND attempts = 1"); n != 6 {
			t.Errorf("%d arrived by a first attempt, want 6", n)
		}
		if wrong, err := report.Recount(t.Context(), d); err != nil || len(wrong) > 0 {
			t.Errorf("unnotified money: %+v, %v", wrong, err)
		}
		ordersNotified(t, f, 2, 2) // the others are skipped: nobody must be notified of them
		if n := f.Count(t, "SELECT coalesce(sum(orders), 0) FROM report_unnotified"); n != 0 {
			t.Errorf("%d orders count as unnotified", n)
		}
	})
}
