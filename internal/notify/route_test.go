package notify_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// TestEachChannelIsNotifiedOnceInItsOwnFormat has a bus beside webhooks, and an order
// with an address of its own.
func TestEachChannelIsNotifiedOnceInItsOwnFormat(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10}})
		routed(t, f, func(s *merchant.Settings) {
			s.URLs = twoAddresses
			s.Endpoints = []merchant.Endpoint{
				{Name: "bus-1", Channel: "bus", URL: "bus://one.test", Weight: 1, Format: "form"},
				{Name: "bus-2", Channel: "bus", URL: "bus://two.test", Weight: 1},
				{Name: "closing", Channel: notify.Webhook, URL: "http://closing.test", Events: []string{"order.closed"}},
			}
		})
		ch := newHosts()
		disp := notify.NewDispatcher(notify.Options{
			DB: d, Directory: f.Settings.Merchants, Channels: map[string]notify.Channel{notify.Webhook: ch, "bus": ch}, Nudger: f.Nudger,
			Breakers: newBreakers(f, never), Concurrency: 10, Timeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(func() { stop(disp, 5*time.Second) })
		order := func(out, own string) {
			t.Helper()
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: out, Amount: 10, Currency: "CNY",
				Supplier: "sp-main", NotifyURL: own,
			})
			if err == nil {
				_, err = f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 10))
			}
			if err != nil {
				t.Fatal(err)
			}
			drain(t, f, disp)
		}
		order("plain", "")
		if a, b, one, two := ch.got("a.test"), ch.got("b.test"), ch.got("one.test"), ch.got("two.test"); a != 1 || b != 0 || one != 1 ||
			two != 0 {
			t.Errorf("notified %d and %d times by webhook, %d and %d by bus", a, b, one, two)
		}
		for _, m := range ch.sent {
			if want := map[bool]string{true: "form", false: "standard"}[strings.HasPrefix(m.URL, "bus:")]; m.Format != want ||
				m.To.ID != f.M1.ID {
				t.Errorf("%s in the format %q for %d", m.URL, m.Format, m.To.ID)
			}
		}
		order("own", "http://own.test/n")
		if own, a, one := ch.got("own.test"), ch.got("a.test"), ch.got("one.test"); own != 1 || a != 1 || one != 2 {
			t.Errorf("the order's own address was notified %d times, the merchant's %d, the bus %d", own, a, one)
		}
		if n := ch.got("closing"); n != 0 {
			t.Errorf("notified %d times of events that it does not accept", n)
		}
		f.Want(t, 0, "SELECT count(*) FROM endpoint_health WHERE endpoint LIKE '%own%'")
	})
}
