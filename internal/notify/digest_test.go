package notify_test

import (
	"log/slog"
	"testing"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/db"
	"backstop/internal/db/dbtest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

func TestADigestGathersWhatIsDueIntoOneMessage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		m := *f.M1
		m.Endpoints = []merchant.Endpoint{{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000}}
		m.Settings.WaitsMS = []int64{60_000}
		book := merchant.NewBook([]*merchant.Merchant{&m}, nil)
		nudges := paid(t, f, 12)
		if _, err := d.NewRaw("UPDATE deliveries SET channel = 'email', url = ''").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n == 1 {
				return notify.Result{Class: notify.Connect, Error: "refused"}
			}
			return notify.Result{Class: notify.OK}
		}}
		breakers := newBook(f, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute})
		disp := notify.NewDispatcher(notify.Options{
			DB: d, Book: func() *merchant.Book { return book }, Channels: map[string]notify.Channel{notify.Email: ch}, Nudger: f.Nudger,
			Breakers: breakers, Concurrency: 10, Timeout: 2 * time.Second, Log: slog.New(slog.NewTextHandler(testOut{t}, nil)),
		})
		t.Cleanup(func() { stop(disp, time.Second) })
		disp.Offer(nudges[:1])
		until(t, "all twelve failed together", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait' AND attempts = 1 AND lease_owner = 0") == 12
		})
		if ch.count() != 1 || len(ch.sent[0].More) != 11 {
			t.Fatalf("%d messages, the first with %d more", ch.count(), len(ch.sent[0].More))
		}
		if r := breakers.Of(m.ID); r == nil || r.State != breaker.Closed || r.Failures != 1 {
			t.Errorf("one message counts once: %+v", r)
		}
		f.Want(t, 12, "SELECT count(*) FROM notify_attempts WHERE class = 'connect'")

		if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()-1).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		disp.Offer(nudges[:1])
		until(t, "all are told", func() bool { return delivered(f, t) == 12 })
		ids := map[string]bool{ch.sent[1].ID: true}
		for _, p := range ch.sent[1].More {
			if len(p.Body) == 0 || p.Type != "order.paid" {
				t.Errorf("part %+v", p)
			}
			ids[p.ID] = true
		}
		if ch.count() != 2 || len(ids) != 12 {
			t.Errorf("%d messages, %d different events in the second", ch.count(), len(ids))
		}
	})
}

func TestEventsOfADigestWaitForItsEnd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		raw := `{"endpoints":[{"name":"desk","channel":"email","url":"mailto:a@b.test","digest_ms":3600000}],"waits_ms":[1000],"max_in_flight":5}`
		if _, err := d.NewRaw("UPDATE merchants SET notify = ? WHERE code = 'm1'", raw).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.M1 = f.Settings.Merchants().ByCode("m1")
		paid(t, f, 3)
		var due []int64
		if err := d.NewRaw("SELECT DISTINCT next_at FROM deliveries WHERE channel = 'email'").Scan(t.Context(), &due); err != nil {
			t.Fatal(err)
		}
		const hour = int64(3600) * 1_000_000
		if len(due) != 1 || due[0]%hour != 0 || due[0] <= d.Now() || due[0] > d.Now()+hour {
			t.Errorf("due at %v, want the end of this hour", due)
		}
	})
}
