package notify_test

import (
	"log/slog"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"

	"github.com/uptrace/bun"
)

func TestADigestGathersWhatIsDueIntoOneMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		m := *f.M1
		m.Endpoints = []merchant.Endpoint{{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000}}
		m.Settings.WaitsMS = []int64{60_000}
		book := merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
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
		breakers := newBreakers(f, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute})
		disp := notify.NewDispatcher(notify.Options{
			DB: d, Directory: func() *merchant.Directory { return book }, Channels: map[string]notify.Channel{notify.Email: ch},
			Nudger:   f.Nudger,
			Breakers: breakers, Concurrency: 10, Timeout: 2 * time.Second, Log: slog.New(slog.NewTextHandler(testOut{t}, nil)),
		})
		t.Cleanup(func() { stop(disp, time.Second) })
		disp.Offer(nudges[:1])
		waittest.Until(t, "all twelve failed together", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait' AND attempts = 1 AND lease_owner = 0") == 12 &&
				disp.InFlight() == 0
		})
		if ch.count() != 1 || len(ch.sent[0].More) != 11 {
			t.Fatalf("%d messages, the first with %d more", ch.count(), len(ch.sent[0].More))
		}
		if r := breakers.Of(m.Recipient()); r == nil || r.State != breaker.Closed || r.Failures != 1 {
			t.Errorf("one message counts once: %+v", r)
		}
		f.Want(t, 12, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'connect'")

		if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()-1).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		disp.Offer(nudges[:1])
		waittest.Until(t, "all are notified", func() bool { return delivered(f, t) == 12 })
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

// All of a digest are due at the same moment, and claimed together.
func TestWhatIsClaimedTogetherIsOneMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result { return notify.Result{Class: notify.OK} }}
		f, disp, _, nudges := mails(t, d, 4, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute}, ch,
			merchant.Endpoint{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000})
		disp.Offer(nudges)
		waittest.Until(t, "all are notified", func() bool { return delivered(f, t) == 4 })
		if ch.count() != 1 || len(ch.sent[0].More) != 3 {
			t.Errorf("%d messages, the first with %d more", ch.count(), len(ch.sent[0].More))
		}
		f.Want(t, 4, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'ok'")
	})
}

func TestEventsOfADigestWaitForItsEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		raw := `{"endpoints":[{"name":"desk","channel":"email","url":"mailto:a@b.test","digest_ms":3600000}],"waits_ms":[1000],"max_in_flight":5}`
		if _, err := d.NewRaw("UPDATE merchants SET notify = ? WHERE code = 'm1'", raw).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Settings.Refresh(t.Context()); err != nil {
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

// mails starts a dispatcher for a merchant with these addresses and n paid orders that are
// notified by mail.
func mails(t *testing.T, d *db.DB, n int, p breaker.Policy, ch notify.Channel, addresses ...merchant.Endpoint) (*paymenttest.Fixture,
	*notify.Dispatcher, *breaker.Cache, []queue.Nudge,
) {
	f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
	m := *f.M1
	m.Endpoints = addresses
	m.Settings.WaitsMS = []int64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}
	book := merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
	nudges := paid(t, f, n)
	if _, err := d.NewRaw("UPDATE deliveries SET channel = 'email', url = ''").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBreakers(f, p)
	return f, mailer(t, f, book, b, ch), b, nudges
}

func mailer(t *testing.T, f *paymenttest.Fixture, book *merchant.Directory, b *breaker.Cache, ch notify.Channel) *notify.Dispatcher {
	disp := notify.NewDispatcher(notify.Options{
		DB: f.DB, Directory: func() *merchant.Directory { return book }, Channels: map[string]notify.Channel{notify.Email: ch},
		Nudger:   f.Nudger,
		Breakers: b, Concurrency: 10, Timeout: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	t.Cleanup(func() { stop(disp, time.Second) })
	return disp
}

// Nodes that find a digest due at the same moment, each by other events of it, send
// one message together; so they do where it fails and is due again.
func TestTwoNodesSendOneDigest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const rounds, events = 2, 20
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n%2 == 1 {
				return notify.Result{Class: notify.Connect, Error: "refused"}
			}
			return notify.Result{Class: notify.OK}
		}}
		desk := merchant.Endpoint{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000}
		f, _, _, nudges := mails(t, d, rounds*events, never, ch, desk)
		m := *f.M1
		m.Endpoints = []merchant.Endpoint{desk}
		m.Settings.WaitsMS = []int64{1500} // all of a message are written long before that
		book := merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
		here, there := mailer(t, f, book, newBreakers(f, never), ch), mailer(t, f, book, newBreakers(f, never), ch)
		if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()+time.Hour.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			mine := nudges[round*events : (round+1)*events]
			ids := make([]int64, events)
			for i, n := range mine {
				ids[i] = n.Delivery
			}
			if _, err := d.NewRaw("UPDATE deliveries SET next_at = ? WHERE id IN (?)", d.Now(),
				bun.List(ids)).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			// One message that fails, and one that is taken.
			waittest.Until(t, "all of the round are notified", func() bool {
				here.Offer(mine[:events/2])
				there.Offer(mine[events/2:])
				return delivered(f, t) == int64(events*(round+1)) || ch.count() > 2*(round+1)
			})
			if n := ch.count(); n != 2*(round+1) {
				t.Fatalf("%d messages after round %d", n, round+1)
			}
		}
		for i, m := range ch.sent {
			if len(m.More) != events-1 {
				t.Errorf("message %d contains %d events", i, 1+len(m.More))
			}
		}
		f.Want(t, 2*rounds*events, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
	})
}

// What a node that died had claimed of a digest is sent after its lease, in one
// message too.
func TestADigestOfADeadNodeIsSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{}
		f, disp, _, nudges := mails(t, d, 4, never, ch,
			merchant.Endpoint{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000})
		lease := d.Now() + (300 * time.Millisecond).Microseconds()
		if _, err := d.NewRaw("UPDATE deliveries SET status = 'sending', attempts = 1, lease_owner = 7, next_at = ?",
			lease).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "all are notified", func() bool { disp.Offer(nudges); return delivered(f, t) == 4 })
		if ch.count() != 1 || len(ch.sent[0].More) != 3 || d.Now() < lease {
			t.Errorf("%d messages, the first with %d more", ch.count(), len(ch.sent[0].More))
		}
		f.Want(t, 4, "SELECT count(*) FROM deliveries WHERE attempts = 2")
	})
}

// An address gets the events that it takes: what goes elsewhere does not ride along.
func TestADigestHoldsWhatItsEndpointTakes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{}
		f, disp, _, nudges := mails(t, d, 6, never, ch,
			merchant.Endpoint{
				Name: "sales", Channel: notify.Email, URL: "mailto:sales@m1.test", Events: []string{"order.paid"},
				DigestMS: 60_000,
			},
			merchant.Endpoint{Name: "finance", Channel: notify.Email, URL: "mailto:finance@m1.test", Events: []string{"refund.succeeded"}},
		)
		if _, err := d.NewRaw("UPDATE deliveries SET event_type = 'refund.succeeded' WHERE id = ?",
			nudges[3].Delivery).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		disp.Offer(nudges[:1])
		waittest.Until(t, "the digest is sent", func() bool { return delivered(f, t) >= 5 })
		disp.Offer(nudges)
		waittest.Until(t, "all are notified", func() bool { return delivered(f, t) == 6 })
		for _, m := range ch.sent {
			types := []string{m.Type}
			for _, p := range m.More {
				types = append(types, p.Type)
			}
			for _, kind := range types {
				if (kind == "order.paid") != (m.URL == "mailto:sales@m1.test") {
					t.Errorf("%s was sent to %s", kind, m.URL)
				}
			}
		}
	})
}

// A breaker tries one notification, and not a digest's worth: what waits uses up no
// attempts.
func TestAProbeIsNoDigest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			return notify.Result{
				Class: notify.Connect,
				Error: "refused",
			}
		}}
		f, disp, b, nudges := mails(t, d, 12, breaker.Policy{Failures: 1, Open: 50 * time.Millisecond, Window: time.Minute}, ch,
			merchant.Endpoint{Name: "desk", Channel: notify.Email, URL: "mailto:desk@m1.test", DigestMS: 60_000})
		disp.Offer(nudges[:1])
		waittest.Until(t, "it opens", func() bool { return b.Of(f.M1.Recipient()).Tripped() && disp.InFlight() == 0 })
		waittest.Until(t, "all wait", func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'sending'") == 0 })
		before := f.Count(t, "SELECT sum(attempts) FROM deliveries")
		waittest.Until(t, "three probes fail", func() bool {
			disp.Pull([]int64{f.M1.ID})
			return f.Count(t, "SELECT count(*) FROM breaker_history WHERE cause = 'probe_failed'") >= 3
		})
		spent := f.Count(t, "SELECT sum(attempts) FROM deliveries") - before // read first: the next probe may begin at any moment
		if probes := f.Count(t, "SELECT count(*) FROM breaker_history WHERE to_state = 'half_open'"); spent > probes {
			t.Errorf("%d attempts for %d probes", spent, probes)
		}
	})
}
