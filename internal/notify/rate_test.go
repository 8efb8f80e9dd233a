package notify_test

import (
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// rated is a dispatcher for m1 alone, whose rate the returned function sets.
func rated(t *testing.T, f *paymenttest.Fixture, ch notify.Channel, perSecond float64) (*notify.Dispatcher, func(float64)) {
	var book atomic.Pointer[merchant.Directory]
	set := func(perSecond float64) {
		m := *f.M1
		m.Settings.RatePerSecond = perSecond
		book.Store(merchant.NewDirectory([]*merchant.Merchant{&m}, nil))
	}
	set(perSecond)
	return crowdWith(t, f, book.Load, ch, 50, newBreakers(f, never)), set
}

// others adds n more living processes beside this one, of a version that does not report
// whether it sends.
func others(t *testing.T, d *db.DB, n int) {
	t.Helper()
	for i := range n {
		_, err := d.NewRaw("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at) VALUES (?, 'x', '', ?, 1, ?)",
			100+i, 100+i, d.Now()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	beat(t, d)
}

func beat(t *testing.T, d *db.DB) {
	t.Helper()
	if err := d.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesThatDoNotSendTakeNoShareOfARate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		others(t, d, 99)
		if _, err := d.NewRaw("UPDATE nodes SET sends = FALSE").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		beat(t, d)
		disp, _ := rated(t, f, &fakeChannel{}, 20)
		disp.Offer(paid(t, f, 20)) // a second's worth; a hundredth of it would take a minute and a half
		waittest.Until(t, "all delivered", func() bool { return delivered(f, t) == 20 })
	})
}

func TestOlderProcessesTakeTheirShareOfARate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		others(t, d, 99)
		disp, _ := rated(t, f, &fakeChannel{}, 5)
		disp.Offer(paid(t, f, 3))
		waittest.Until(t, "the first is delivered", func() bool { return delivered(f, t) == 1 })
		waittest.Until(t, "the others wait", func() bool { return notify.Paced(disp, f.M1.ID) })
		if rate, burst := notify.Bucket(disp, f.M1.ID); rate > 0.06 || burst != 1 {
			t.Errorf("%v a second and %d at once, five a second shared with 99 others", rate, burst)
		}
		f.Want(t, 1, "SELECT sum(attempts) FROM deliveries")
	})
}

// What waits for a token does not wait at the old rate.
func TestAGrownRateIsFeltByWhatWaits(t *testing.T) {
	t.Parallel()
	for name, grow := range map[string]func(t *testing.T, d *db.DB, set func(float64)){
		"raised": func(_ *testing.T, _ *db.DB, set func(float64)) { set(1000) },
		"lifted": func(_ *testing.T, _ *db.DB, set func(float64)) { set(0) },
		"shared with nobody any more": func(t *testing.T, d *db.DB, _ func(float64)) {
			if _, err := d.NewRaw("DELETE FROM nodes WHERE slot >= 100").Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			beat(t, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
				others(t, d, 200)
				disp, set := rated(t, f, &fakeChannel{}, 2) // one in a hundred seconds
				disp.Offer(paid(t, f, 3))
				waittest.Until(t, "the first is delivered", func() bool { return delivered(f, t) == 1 })
				waittest.Until(t, "the others wait", func() bool { return notify.Paced(disp, f.M1.ID) })
				grow(t, d, set)
				waittest.Until(t, "the others are delivered", func() bool { return delivered(f, t) == 3 })
			})
		})
	}
}

// A lane asks several times before its token is there: that neither costs a token nor adds one.
func TestAskingAgainKeepsTheRate(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n"})
	ch := &fakeChannel{}
	disp, set := rated(t, f, ch, 100)
	disp.Offer(paid(t, f, 100))
	waittest.Until(t, "a second's worth is delivered", func() bool { return delivered(f, t) == 100 })
	set(0.4) // what the bucket gathered meanwhile is more than it may hold from now on
	nudges := paid(t, f, 3)
	began := time.Now()
	disp.Offer(nudges)
	waittest.Until(t, "all delivered", func() bool { return delivered(f, t) == 103 })
	// Two waits of 2.5 s.
	if took := ch.times[102].Sub(began); took < 4900*time.Millisecond {
		t.Errorf("three were sent in %s at 0.4 a second", took)
	}
}

// After a breaker closed, its merchant is notified one at a time for a while; then its own rate
// applies in full, also where the two are equal for a moment.
func TestAMerchantsOwnBurstReturnsAfterARelease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		m := *f.M1
		m.Settings.RatePerSecond = 10
		b := newBreakers(f, never)
		disp := crowdWith(t, f, func() *merchant.Directory { return merchant.NewDirectory([]*merchant.Merchant{&m}, nil) }, &fakeChannel{},
			50, b)
		for i, query := range []string{
			"INSERT INTO breakers (owner_id, state, cause, changed_at, updated_at) VALUES (?0, 'closed', 'probe_taken', ?1, ?1)",
			"UPDATE breakers SET changed_at = 0, updated_at = ?1 WHERE owner_id = ?0",
		} {
			if _, err := d.NewRaw(query, m.ID, d.Now()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			disp.Offer(paid(t, f, 1))
			waittest.Until(t, "delivered", func() bool { return delivered(f, t) == int64(i+1) })
		}
		if rate, burst := notify.Bucket(disp, m.ID); rate != 10 || burst != 10 {
			t.Errorf("%v a second and %d at once, want ten", rate, burst)
		}
	})
}
