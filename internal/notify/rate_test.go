package notify_test

import (
	"sync/atomic"
	"testing"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// rated is a dispatcher for m1 alone, whose rate the returned function sets.
func rated(t *testing.T, f *paymenttest.Fixture, ch notify.Channel, perSecond float64) (*notify.Dispatcher, func(float64)) {
	var book atomic.Pointer[merchant.Book]
	set := func(perSecond float64) {
		m := *f.M1
		m.Settings.RatePerSecond = perSecond
		book.Store(merchant.NewBook([]*merchant.Merchant{&m}, nil))
	}
	set(perSecond)
	return crowdWith(t, f, book.Load, ch, 50, newBook(f, never)), set
}

// others puts n more living processes beside this one, of a program that does not
// say whether it sends.
func others(t *testing.T, d *db.DB, n int) {
	t.Helper()
	for i := range n {
		_, err := d.NewRaw("INSERT INTO nodes (slot, name, boot, started_at, seen_at) VALUES (?, '', ?, 1, ?)", 100+i, 100+i, d.Now()).Exec(t.Context())
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
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		others(t, d, 99)
		if _, err := d.NewRaw("UPDATE nodes SET sends = FALSE").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		beat(t, d)
		disp, _ := rated(t, f, &fakeChannel{}, 20)
		disp.Offer(paid(t, f, 20)) // a second's worth; a hundredth of it would take a minute and a half
		until(t, "all delivered", func() bool { return delivered(f, t) == 20 })
	})
}

func TestOlderProcessesTakeTheirShareOfARate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		others(t, d, 99)
		disp, _ := rated(t, f, &fakeChannel{}, 5)
		disp.Offer(paid(t, f, 3))
		until(t, "the first is delivered", func() bool { return delivered(f, t) == 1 })
		until(t, "the others wait", func() bool { return notify.Paced(disp, f.M1.ID) })
		if rate, burst := notify.Bucket(disp, f.M1.ID); rate > 0.06 || burst != 1 {
			t.Errorf("%v a second and %d at once, five a second shared with 99 others", rate, burst)
		}
		f.Want(t, 1, "SELECT sum(attempts) FROM deliveries")
	})
}
