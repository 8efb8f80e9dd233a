package notify_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// fakeChannel records what it is sent and answers as configured.
type fakeChannel struct {
	answer func(n int, m notify.Message) notify.Result

	mu       sync.Mutex
	sent     []notify.Message
	times    []time.Time
	results  []notify.Result
	running  map[string]int
	overlaps int
	most     int // most calls at a time
	now      int
}

func (c *fakeChannel) Send(ctx context.Context, m notify.Message) notify.Result {
	c.mu.Lock()
	if c.running == nil {
		c.running = map[string]int{}
	}
	c.running[m.ID]++
	if c.running[m.ID] > 1 {
		c.overlaps++
	}
	c.now++
	c.most = max(c.most, c.now)
	c.sent = append(c.sent, m)
	c.times = append(c.times, time.Now())
	n := len(c.sent)
	c.results = append(c.results, notify.Result{})
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running[m.ID]--
		c.now--
		c.mu.Unlock()
	}()
	res := notify.Result{Class: notify.OK, Status: 200}
	if c.answer != nil {
		res = c.answer(n, m)
	}
	c.mu.Lock()
	c.results[n-1] = res
	c.mu.Unlock()
	return res
}

func (c *fakeChannel) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

// never opens a breaker: tests of other things may fail as often as they like.
var never = breaker.Policy{Failures: 1 << 30, Open: time.Minute, Window: time.Minute}

func dispatcher(t testing.TB, f *paymenttest.Fixture, ch notify.Channel, concurrency int) *notify.Dispatcher {
	return dispatcherWith(t, f, ch, concurrency, breaker.NewCache(f.DB, func(recipient.Recipient) breaker.Policy { return never }))
}

func dispatcherWith(t testing.TB, f *paymenttest.Fixture, ch notify.Channel, concurrency int, b *breaker.Cache) *notify.Dispatcher {
	return dispatcherOf(t, f, ch, concurrency, b, nil)
}

func dispatcherOf(t testing.TB, f *paymenttest.Fixture, ch notify.Channel, concurrency int, b *breaker.Cache, acks *notify.Acks) *notify.Dispatcher {
	d := notify.NewDispatcher(notify.Options{
		DB: f.DB, Breakers: b, Directory: f.Settings.Merchants, Channels: map[string]notify.Channel{notify.Webhook: ch},
		Nudger: f.Nudger, Concurrency: concurrency, Timeout: 2 * time.Second, Acks: acks,
		Log: slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	t.Cleanup(func() { stop(d, 5*time.Second) })
	return d
}

func stop(d *notify.Dispatcher, wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	d.Close(ctx)
}

// paid makes n paid orders of m1 and returns what to offer.
func paid(t testing.TB, f *paymenttest.Fixture, n int) []queue.Nudge {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			o, _, err := f.Processor.Create(context.Background(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 10,
				Currency: "CNY", Supplier: "sp-main",
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := f.Processor.Submit(context.Background(), f.Callback(o.OrderNo, "T"+o.OrderNo, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var rows []struct{ ID, RecipientID int64 }
	if err := f.DB.NewRaw("SELECT id, recipient_id FROM deliveries WHERE status = 'queued'").Scan(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	nudges := make([]queue.Nudge, len(rows))
	for i, r := range rows {
		nudges[i] = queue.Nudge{Delivery: r.ID, Recipient: r.RecipientID}
	}
	return nudges
}

func delivered(f *paymenttest.Fixture, t testing.TB) int64 {
	return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
}

func TestDeliveredOnceWithTheFrozenBody(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{1000}})
		ch := &fakeChannel{}
		disp := dispatcher(t, f, ch, 50)
		nudges := paid(t, f, 100)
		for range 3 {
			disp.Offer(nudges) // doubled tasks are normal
		}
		waittest.Until(t, "all delivered", func() bool { return delivered(f, t) == 100 })
		if ch.count() != 100 || ch.overlaps != 0 {
			t.Errorf("%d sent, %d overlaps", ch.count(), ch.overlaps)
		}
		if ch.most > 10 {
			t.Errorf("%d at a time to one merchant, its cap is 10", ch.most)
		}
		m := ch.sent[0]
		if m.Type != "order.paid" || m.URL != "http://m1.test/n" || len(m.Secrets) != 1 || len(m.Body) == 0 {
			t.Errorf("message %+v", m)
		}
		f.Want(t, 100, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'ok'")
		f.Want(t, 0, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL OR lease_owner <> 0")
	})
}

func TestRetriesWaitAsScheduledByTheTickAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{1000, 1500}})
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n < 3 {
				return notify.Result{Class: notify.BadStatus, Status: 500}
			}
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		disp := dispatcher(t, f, ch, 50)
		disp.Offer(paid(t, f, 1))
		stopTick := make(chan struct{})
		defer close(stopTick)
		go func() { // the database tick: Redis lost every retry
			for {
				select {
				case <-stopTick:
					return
				case <-time.After(time.Second):
					if ms, _, err := notify.DueRecipients(context.Background(), f.DB, 0, 10); err == nil {
						disp.Pull(ms)
					}
				}
			}
		}()
		waittest.Until(t, "delivered at the third try", func() bool { return delivered(f, t) == 1 })
		for i, want := range []time.Duration{time.Second, 1500 * time.Millisecond} {
			// Never early; how late is for the bench to say, a busy test machine has its own time.
			if got := ch.times[i+1].Sub(ch.times[i]); got < want-50*time.Millisecond || got > want+2*time.Second {
				t.Errorf("wait %d was %s, want %s", i+1, got, want)
			}
		}
		f.Want(t, 3, "SELECT attempts FROM deliveries")
	})
}

func TestExhaustedNotificationStandsOnTheExceptionDesk(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"}) // no waits: one attempt
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			return notify.Result{Class: notify.Connect, Error: "refused \x00\xff"}
		}}
		disp := dispatcher(t, f, ch, 50)
		disp.Offer(paid(t, f, 3))
		waittest.Until(t, "exhausted", func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") == 3 })
		f.Want(t, 3, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND order_no <> '' AND amount = 10")
	})
}

func TestTwoNodesNeverOverlapOnOneNotification(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{100, 100, 100, 100}, MaxInFlight: 50})
		var calls atomic.Int64
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			time.Sleep(time.Millisecond) // an attempt lasts, or two could not overlap
			if calls.Add(1)%3 == 0 {
				return notify.Result{Class: notify.BadStatus, Status: 500}
			}
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		a, b := dispatcher(t, f, ch, 50), dispatcher(t, f, ch, 50)
		nudges := paid(t, f, 200)
		stopNow := make(chan struct{})
		var wg sync.WaitGroup
		for _, disp := range []*notify.Dispatcher{a, b, a, b} {
			wg.Go(func() {
				for {
					select {
					case <-stopNow:
						return
					case <-time.After(3 * time.Millisecond):
						disp.Offer(nudges)
					}
				}
			})
		}
		waittest.Until(t, "all over", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL") == 0
		})
		close(stopNow)
		wg.Wait()
		if ch.overlaps != 0 {
			t.Errorf("%d attempts overlapped", ch.overlaps)
		}
		f.Want(t, 0, "SELECT count(*) FROM (SELECT delivery_id FROM "+notify.AllAttempts+
			" AS na WHERE class = 'ok' GROUP BY delivery_id HAVING count(*) > 1) AS twice")
	})
}

// The negative control of the test above: without the claim, the same two nodes
// do overlap, so the test can fail.
func TestWithoutTheClaimTwoNodesOverlap(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", ByHand: true})
	nudges := paid(t, f, 20)
	ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
		time.Sleep(5 * time.Millisecond) // as above
		return notify.Result{Class: notify.OK}
	}}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for _, n := range nudges {
				if f.Count(t, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'queued'", n.Delivery) == 1 {
					ch.Send(context.Background(), notify.Message{ID: strconv.FormatInt(n.Delivery, 10)})
					_, _ = f.DB.NewRaw("UPDATE deliveries SET status = 'delivered' WHERE id = ?", n.Delivery).Exec(context.Background())
				}
			}
		})
	}
	wg.Wait()
	if ch.overlaps == 0 {
		t.Error("the naive way did not overlap: this harness cannot see the fault")
	}
}

func TestCrashedAttemptIsSentAgainAfterReleaseOrLease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{1000}})
		nudges := paid(t, f, 2)
		const deadBoot = 4242
		lease := f.DB.Now() + 1_500_000
		_, err := f.DB.NewRaw("UPDATE deliveries SET status = 'sending', attempts = 1, lease_owner = ?, next_at = ?", deadBoot,
			lease).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ch := &fakeChannel{}
		disp := dispatcher(t, f, ch, 50)
		disp.Offer(nudges)
		waittest.Until(t, "it has looked at them", func() bool { return notify.Left(disp) == "" })
		if ch.count() != 0 {
			t.Fatal("a leased row was sent")
		}
		if n, err := notify.ReleaseLeases(t.Context(), f.DB, []int64{deadBoot}); n != 2 || err != nil {
			t.Fatalf("released %d, %v", n, err)
		}
		disp.Offer(nudges[:1])
		waittest.Until(t, "the released one is sent", func() bool { return delivered(f, t) == 1 })

		// The other one: its node never comes back, the lease runs out.
		_, err = f.DB.NewRaw("UPDATE deliveries SET status = 'sending', lease_owner = ?, next_at = ? WHERE status = 'retry_wait'", deadBoot,
			f.DB.Now()+300_000).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		disp.Pull([]int64{f.M1.ID})
		waittest.Until(t, "the expired lease is sent", func() bool { return delivered(f, t) == 2 })
		f.Want(t, 2, "SELECT max(attempts) FROM deliveries")
	})
}

func TestHangingMerchantHoldsItsOwnSlotsOnly(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", MaxInFlight: 3})
	hang := make(chan struct{})
	ch := &fakeChannel{answer: func(_ int, m notify.Message) notify.Result {
		if m.URL == "http://m1.test/n" {
			select {
			case <-hang:
			case <-time.After(time.Minute):
			}
		}
		return notify.Result{Class: notify.OK}
	}}
	disp := dispatcher(t, f, ch, 10)
	stuck := paid(t, f, 20)
	disp.Offer(stuck[:19])
	waittest.Until(t, "the hanging merchant fills its cap", func() bool { return disp.InFlight() == 3 })
	_, err := f.DB.NewRaw("UPDATE deliveries SET recipient_id = ?, url = 'http://m2.test/n' WHERE id = ?", f.M2.ID,
		stuck[19].Delivery).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	disp.Pull([]int64{f.M2.ID})
	waittest.Until(t, "another merchant is served meanwhile", func() bool { return delivered(f, t) == 1 })
	close(hang)
	waittest.Until(t, "the rest follows", func() bool { return delivered(f, t) == 20 })
	f.Want(t, 1, "SELECT max(attempts) FROM deliveries")
}

func TestBacklogBeyondTheWindowIsPulledFromSQL(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", MaxInFlight: 50})
		paid(t, f, 1200)
		ch := &fakeChannel{}
		disp := dispatcher(t, f, ch, 50)
		disp.Pull([]int64{f.M1.ID})
		waittest.Until(t, "one pull drains the merchant's backlog", func() bool { return delivered(f, t) == 1200 })
		if ch.count() != 1200 {
			t.Errorf("%d sent", ch.count())
		}
	})
}

// A tick that comes while rows are being fetched may know of one more: they are
// fetched again, and then nothing is left to do for this merchant.
func TestAPullDuringAPullIsNotForgotten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		disp := dispatcherWith(t, f, &fakeChannel{}, 10, forgiving(d))
		for range 20 {
			disp.Pull([]int64{f.M1.ID, f.M1.ID})
			waittest.Until(t, "nothing is left of it", func() bool { return notify.Left(disp) == "" })
		}
	})
}

func TestShutdownGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{1000}})
	started := make(chan struct{})
	disp := notify.NewDispatcher(notify.Options{
		DB: f.DB, Directory: f.Settings.Merchants, Nudger: f.Nudger,
		Breakers: breaker.NewCache(f.DB, func(recipient.Recipient) breaker.Policy { return never }), Concurrency: 5,
		Timeout: 10 * time.Second, Log: slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Channels: map[string]notify.Channel{notify.Webhook: hanging{started}},
	})
	disp.Offer(paid(t, f, 1))
	<-started
	stop(disp, 50*time.Millisecond)
	f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0 AND lease_owner = 0")
	f.Want(t, 0, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
}

// hanging answers only when it is cut off.
type hanging struct{ started chan struct{} }

func (h hanging) Send(ctx context.Context, _ notify.Message) notify.Result {
	close(h.started)
	<-ctx.Done()
	return notify.Result{Class: notify.Cancelled}
}

// testOut shows warnings and errors of the code under test.
type testOut struct{ t testing.TB }

func (o testOut) Write(line []byte) (int, error) {
	o.t.Logf("%s", line)
	return len(line), nil
}
