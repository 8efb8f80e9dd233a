package report

import (
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestAnOrderNotifiedLaterCountsForTheMinuteItWasRaisedIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		raised := now - 90*minuteUS
		x := NewDelta(raised)
		for range 3 {
			x.Raised(raised, "CNY", 100)
		}
		x.Raised(raised, "USD", 7)
		put(t, d, x)
		x = NewDelta(now)
		x.Notified(raised, "CNY", 100)
		x.Raised(now, "CNY", 50)
		x.Notified(now, "CNY", 50)
		put(t, d, x)
		foldAll(t, d)
		for name, c := range map[string]struct {
			from int64
			step time.Duration
			want []Notified
		}{
			"an hour":   {now - 59*minuteUS, time.Minute, []Notified{{"CNY", 1, 50, 1, 50}}},
			"six hours": {now - 355*minuteUS, 5 * time.Minute, []Notified{{"CNY", 4, 350, 2, 150}, {"USD", 1, 7, 0, 0}}},
			"a week":    {now - 164*60*minuteUS, 4 * time.Hour, []Notified{{"CNY", 4, 350, 2, 150}, {"USD", 1, 7, 0, 0}}},
		} {
			if got, err := Orders(t.Context(), d, c.from, now, c.step); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
			}
		}
	})
}

func TestWhatWasNeverTriedIsCountedByOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if got, err := NotTried(t.Context(), d); err != nil || got != (Untried{}) {
			t.Errorf("of nothing: %+v, %v", got, err)
		}
		for id, row := range []struct {
			event, attempts int64
			next            any
			currency        string
		}{
			{1, 0, 5, "CNY"}, {1, 0, 5, "CNY"}, // two addresses of one merchant
			{2, 1, 5, "CNY"},   // tried
			{3, 0, nil, "CNY"}, // skipped
			{4, 0, 5, ""},      // of a system of our own
			{5, 0, 5, "USD"},
		} {
			exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, next_at, created_at, currency, amount)"+
				" VALUES (?, ?, 1, 1, 'order.paid', 'webhook', '', 'queued', ?, ?, ?, ?, 1)", id+1, row.event, row.attempts, row.next,
				100+id, row.currency)
		}
		if got, err := NotTried(t.Context(), d); err != nil || got != (Untried{Orders: 2, Oldest: 100}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestOrdersAreRecountedAndFixed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		add := func(event int64, status, currency string, counted bool) {
			t.Helper()
			exec(t, d, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, currency, amount, counted)"+
				" VALUES (?, ?, 1, 77, 'order.paid', 'webhook', '', ?, ?, ?, 100, ?)", d.NewID(), event, status, now, currency, counted)
		}
		exec(t, d, "INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, paid_amount)"+
			" VALUES (77, 'O1', 1, 'T1', 1, 100, 'CNY', 2, '', '', 'paid', 2, 0, 0, 100)")
		add(1, "delivered", "CNY", true)
		add(2, "exhausted", "CNY", true)
		add(3, "retry_wait", "", true)   // delivered, and sent again by hand
		add(4, "delivered", "CNY", true) // one of two
		add(4, "queued", "CNY", true)
		add(5, "delivered", "CNY", false) // raised before there were counters
		x := NewDelta(now)
		for range 4 {
			x.Raised(now, "CNY", 100)
		}
		for range 2 {
			x.Notified(now, "CNY", 100)
		}
		put(t, d, x)
		recount := func(when string, want int) []OrdersDifference {
			t.Helper()
			wrong, err := RecountOrders(t.Context(), d, 100*time.Hour)
			if err != nil || len(wrong) != want {
				t.Fatalf("%s: %+v, %v, want %d", when, wrong, err, want)
			}
			return wrong
		}
		recount("not folded yet", 0)
		foldAll(t, d)
		recount("folded", 0)
		exec(t, d, "UPDATE report_orders SET notified = 1 WHERE span_s = 60")
		exec(t, d, "DELETE FROM report_orders WHERE span_s = 3600")
		exec(t, d, "INSERT INTO report_orders VALUES (60, ?, 'JPY', 1, 1, 1, 1)", floor(now, time.Minute))
		if err := MendOrders(t.Context(), d, time.UTC, recount("changed by hand", 3)); err != nil {
			t.Fatal(err)
		}
		recount("fixed", 0)
		x = NewDelta(now)
		x.Raised(now-30*60*minuteUS, "CNY", 100) // before what is counted anew
		put(t, d, x)
		recount("with an older order, not folded yet", 0)
		if _, err := RecountOrders(t.Context(), d, time.Hour); err != nil {
			t.Error(err)
		}
	})
}
