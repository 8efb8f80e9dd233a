package notify_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
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
	"backstop/internal/recipient"
)

// strict opens after three failures in a row, for a moment.
var strict = breaker.Policy{Failures: 3, Open: 400 * time.Millisecond, Window: time.Minute}

func newBreakers(f *paymenttest.Fixture, p breaker.Policy) *breaker.Cache {
	return breaker.NewCache(f.DB, func(recipient.Recipient) breaker.Policy { return p })
}

// tick does what the clock does each second, faster.
func tick(t testing.TB, f *paymenttest.Fixture, b *breaker.Cache, d *notify.Dispatcher) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if err := b.Refresh(context.Background()); err != nil {
				t.Error(err)
			}
			ms, _, err := notify.DueRecipients(context.Background(), f.DB, 0, 100)
			if err != nil {
				t.Error(err)
			}
			d.Pull(ms)
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

func TestOpenBreakerParksProbesAndReleases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10, 10, 10, 10, 10, 10, 10, 10}})
		var well atomic.Bool
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			if well.Load() {
				return notify.Result{Class: notify.OK, Status: 200}
			}
			return notify.Result{Class: notify.BadStatus, Status: 500}
		}}
		b := newBreakers(f, strict)
		disp := dispatcherWith(t, f, ch, 50, b)
		tick(t, f, b, disp)
		disp.Offer(paid(t, f, 30))
		waittest.Until(t, "the breaker opens", func() bool { return b.Of(f.M1.Recipient()).Tripped() })
		waittest.Until(t, "running attempts end", func() bool { return disp.InFlight() == 0 })
		atOpen := ch.count()
		if atOpen > 2*5 {
			t.Errorf("%d attempts before it opened: more than may run at a time, twice", atOpen)
		}
		before := f.Count(t, "SELECT sum(attempts) FROM deliveries")
		waittest.Until(t, "a probe fails and it stays open", func() bool {
			return f.Count(t, "SELECT count(*) FROM breaker_history WHERE cause = 'probe_failed'") >= 2
		})
		probes := f.Count(t, "SELECT count(*) FROM breaker_history WHERE to_state = 'half_open'")
		if spent := f.Count(t, "SELECT sum(attempts) FROM deliveries") - before; spent > probes {
			t.Errorf("%d attempts while it was open, %d probes: waiting must cost none", spent, probes)
		}
		due, err := notify.Overdue(t.Context(), f.DB, notify.ParkedIDs(b, merchant.NewDirectory([]*merchant.Merchant{f.M1}, nil)))
		if err != nil || due.Count != 0 {
			t.Errorf("%d of the parked count as late, %v", due.Count, err)
		}
		parked, err := notify.Parked(t.Context(), f.DB, f.M1.Recipient())
		if err != nil || parked.Count != 30 {
			t.Errorf("%d parked, %v", parked.Count, err)
		}
		well.Store(true)
		waittest.Until(t, "all are delivered", func() bool { return delivered(f, t) == 30 })
		// The first second after the probe lets ten go; thirty take more than one and a half.
		taken := ch.taken(func(r notify.Result) bool { return r.Class == notify.OK })
		if took := taken[len(taken)-1].Sub(taken[0]); took < 1500*time.Millisecond {
			t.Errorf("30 parked notifications were released in %s: a burst", took)
		}
		if got := f.Count(t, "SELECT count(*) FROM breaker_history WHERE cause = 'probe_taken'"); got != 1 {
			t.Errorf("closed %d times", got)
		}
	})
}

// taken lists when the answers that ok likes were given.
func (c *fakeChannel) taken(ok func(notify.Result) bool) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []time.Time
	for i, r := range c.results {
		if ok(r) {
			all = append(all, c.times[i])
		}
	}
	return all
}

func TestOneNodeOpensTheOtherParks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10, 10, 10}})
		failing := &fakeChannel{answer: func(int, notify.Message) notify.Result { return notify.Result{Class: notify.Timeout} }}
		other := &fakeChannel{}
		p := strict
		p.Open = time.Hour
		b1, b2 := newBreakers(f, p), newBreakers(f, p)
		one, two := dispatcherWith(t, f, failing, 50, b1), dispatcherWith(t, f, other, 50, b2)
		one.Offer(paid(t, f, 5))
		waittest.Until(t, "the first node opens it", func() bool { return b1.Of(f.M1.Recipient()).Tripped() })
		waittest.Until(t, "its attempts are over", func() bool { return one.InFlight() == 0 })
		if err := b2.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		two.Offer(paid(t, f, 5))
		two.Pull([]int64{f.M1.ID})
		waittest.Stays(t, "the other node sends nothing", 150*time.Millisecond, func() bool { return other.count() == 0 })
		f.Want(t, 10, "SELECT count(*) FROM deliveries WHERE status IN ('queued', 'retry_wait')")
	})
}

func TestRateLimitSpreadsAttempts(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n"})
	limited := *f.M1
	limited.Settings.RatePerSecond = 20
	book := merchant.NewDirectory([]*merchant.Merchant{&limited}, nil)
	ch := &fakeChannel{}
	disp := crowd(t, f, book, ch, 50, never)
	nudges := paid(t, f, 40)
	began := time.Now() // not the first attempt, which may itself be late on a busy machine
	disp.Offer(nudges)
	waittest.Until(t, "all delivered", func() bool { return delivered(f, t) == 40 })
	if took := ch.times[39].Sub(began); took < 950*time.Millisecond { // 20 at once, then 20 a second
		t.Errorf("40 were sent in %s at 20 a second", took)
	}
	f.Want(t, 40, "SELECT sum(attempts) FROM deliveries")
}

func crowd(t testing.TB, f *paymenttest.Fixture, book *merchant.Directory, ch notify.Channel, slots int,
	p breaker.Policy,
) *notify.Dispatcher {
	return crowdWith(t, f, func() *merchant.Directory { return book }, ch, slots, newBreakers(f, p))
}

func crowdWith(t testing.TB, f *paymenttest.Fixture, book func() *merchant.Directory, ch notify.Channel, slots int,
	b *breaker.Cache,
) *notify.Dispatcher {
	d := notify.NewDispatcher(notify.Options{
		DB: f.DB, Directory: book, Channels: map[string]notify.Channel{notify.Webhook: ch}, Nudger: f.Nudger,
		Breakers: b, Concurrency: slots, Timeout: 10 * time.Second,
		Log: slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	t.Cleanup(func() { stop(d, 100*time.Millisecond) })
	return d
}

// Nine of ten merchants hang, all at the same moment and without having been seen before: the
// tenth is notified as usual.
func TestMostMerchantsHangAndTheOthersAreNotified(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n"})
	nudges := paid(t, f, 200)
	var merchants []*merchant.Merchant
	for i := range 10 {
		m := *f.M1
		m.ID, m.Code = int64(i+1), string(rune('a'+i))
		m.Settings.URLs = []string{"http://" + m.Code + ".test/n"}
		m.Endpoints = m.Settings.Addresses()
		m.Settings.TimeoutMS = 10_000
		merchants = append(merchants, &m)
	}
	for i := range nudges {
		nudges[i].Recipient = int64(i%10 + 1)
		if _, err := f.DB.NewRaw("UPDATE deliveries SET recipient_id = ?, url = '' WHERE id = ?", nudges[i].Recipient,
			nudges[i].Delivery).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ch := &hangingBut{url: "http://j.test/n", end: make(chan struct{})}
	t.Cleanup(func() { close(ch.end) })
	disp := crowd(t, f, merchant.NewDirectory(merchants, nil), ch, 50, never)
	// The hanging ones come first: the tenth merchant is the last.
	slices.SortStableFunc(nudges, func(a, b queue.Nudge) int { return int(a.Recipient - b.Recipient) })
	disp.Offer(nudges)
	waittest.Until(t, "the one that answers is notified", func() bool { return delivered(f, t) == 20 })
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.hung >= 50 {
		t.Errorf("%d of 50 slots hang", ch.hung)
	}
}

// hangingBut answers one address at once and the others never.
type hangingBut struct {
	url string
	end chan struct{}

	mu   sync.Mutex
	hung int
}

func (h *hangingBut) Send(ctx context.Context, m notify.Message) notify.Result {
	if m.URL == h.url {
		return notify.Result{Class: notify.OK, Status: 200}
	}
	h.mu.Lock()
	h.hung++
	h.mu.Unlock()
	select {
	case <-h.end:
	case <-ctx.Done():
	}
	return notify.Result{Class: notify.Cancelled}
}

// A merchant that is slow to answer works in the slow pool and comes back.
func TestSlowMerchantHasSlotsOfItsOwn(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", MaxInFlight: 50})
	var slow atomic.Bool
	slow.Store(true)
	ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
		if slow.Load() {
			return notify.Result{Class: notify.OK, Status: 200, Took: 4 * time.Second} // as it says
		}
		return notify.Result{Class: notify.OK, Status: 200}
	}}
	disp := dispatcher(t, f, ch, 10)
	disp.Offer(paid(t, f, 3))
	waittest.Until(t, "delivered", func() bool { return delivered(f, t) == 3 })
	if !disp.IsSlow(f.M1.ID) {
		t.Error("answers of 4 s do not make a merchant slow")
	}
	ch.mu.Lock()
	ch.most = 0
	ch.mu.Unlock()
	disp.Offer(paid(t, f, 60))
	waittest.Until(t, "delivered", func() bool { return delivered(f, t) == 63 })
	if ch.most > 4 {
		t.Errorf("%d at a time in the slow pool, it has 4 of 10 slots", ch.most)
	}
	slow.Store(false)
	disp.Offer(paid(t, f, 5))
	waittest.Until(t, "delivered", func() bool { return delivered(f, t) == 68 })
	if disp.IsSlow(f.M1.ID) {
		t.Error("quick again, but still in the slow pool")
	}
}

// lanes records which lane each merchant's nudges took.
type lanes struct {
	mu sync.Mutex
	of map[int64]queue.Lane
}

func (l *lanes) Notify(_ context.Context, lane queue.Lane, nudges []queue.Nudge) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range nudges {
		l.of[n.Recipient] = lane
	}
	return nil
}

func (l *lanes) NotifyAt(ctx context.Context, lane queue.Lane, _ time.Time, nudges []queue.Nudge) error {
	return l.Notify(ctx, lane, nudges)
}

func (l *lanes) Expire(context.Context, time.Time) error { return nil }

func TestNudgesOfSlowMerchantsTakeTheirOwnLane(t *testing.T) {
	t.Parallel()
	tasks := &lanes{of: map[int64]queue.Lane{}}
	n := notify.NewNudger(tasks, func() int64 { return 0 }, slog.New(slog.DiscardHandler))
	n.Route(func(merchant int64) (queue.Lane, bool) {
		switch merchant {
		case 2:
			return queue.Slow, true
		case 3:
			return "", false // parked
		}
		return "", true
	})
	n.Now([]queue.Nudge{{Delivery: 1, Recipient: 1}, {Delivery: 2, Recipient: 2}, {Delivery: 3, Recipient: 3}})
	n.Later(queue.Nudge{Delivery: 4, Recipient: 4, At: 1})
	waittest.Until(t, "nudged", func() bool {
		tasks.mu.Lock()
		defer tasks.mu.Unlock()
		return len(tasks.of) == 3
	})
	n.Close()
	if tasks.of[1] != queue.Live || tasks.of[2] != queue.Slow || tasks.of[4] != queue.Retry {
		t.Errorf("%v", tasks.of)
	}
}

// TestADeadURLDoesNotHoldUpWhatCanBeNotified has sixty notifications for an address that is
// gone wait in front of ten that can be delivered.
func TestADeadURLDoesNotHoldUpWhatCanBeNotified(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{60_000, 60_000, 60_000}})
		var gone sync.Map
		ch := &fakeChannel{answer: func(_ int, m notify.Message) notify.Result {
			if _, dead := gone.Load(m.ID); dead {
				return notify.Result{Class: notify.Connect}
			}
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		dead := paid(t, f, 60)
		var ids []int64
		if err := f.DB.NewRaw("SELECT subject_id FROM deliveries").Scan(t.Context(), &ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			gone.Store(notify.PublicID(id, "order.paid"), true)
		}
		b := newBreakers(f, strict)
		disp := dispatcherWith(t, f, ch, 50, b)
		tick(t, f, b, disp)
		disp.Offer(dead)
		waittest.Until(t, "the breaker opens", func() bool { return b.Of(f.M1.Recipient()).Tripped() })
		paid(t, f, 10)
		waittest.Until(t, "all that can be notified are notified", func() bool { return delivered(f, t) == 10 })
		if probes := f.Count(t, "SELECT count(*) FROM breaker_history WHERE to_state = 'half_open'"); probes > 10 {
			t.Errorf("it took %d probes", probes)
		}
	})
}
