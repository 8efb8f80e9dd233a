package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// together is a processor and the dispatcher of the same process. Nothing nudges and
// nothing ticks: what is sent was created as claimed.
func together(t *testing.T, d *db.DB, o paymenttest.Options, ch notify.Channel, concurrency int, b *breaker.Cache) (f *paymenttest.Fixture,
	here *notify.Dispatcher,
) {
	o.Local = func(f *paymenttest.Fixture) *notify.Dispatcher {
		here = dispatcherWith(t, f, ch, concurrency, b)
		return here
	}
	return paymenttest.New(t, d, o), here
}

// reserved counts what a transaction has created as claimed.
func reserved(t *testing.T, ctx context.Context, tx db.Tx) (n int) {
	t.Helper()
	if err := tx.NewRaw("SELECT count(*) FROM deliveries WHERE status = 'sending'").Scan(ctx, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func forgiving(d *db.DB) *breaker.Cache {
	return breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return never })
}

func pay(t *testing.T, f *paymenttest.Fixture) {
	t.Helper()
	o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
		OutTradeNo: f.Out(), Amount: 10, Currency: "CNY",
		Supplier: "sp-main",
	})
	if err == nil {
		_, err = f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 10))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithAFreeSlotAPaidOrderIsNotifiedByWhoTookIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{}
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 10, forgiving(d))
		for range 30 {
			pay(t, f)
		}
		waittest.Until(t, "all are notified", func() bool { return delivered(f, t) == 30 })
		if ch.count() != 30 || here.InFlight() != 0 {
			t.Errorf("%d sent, %d slots are still held", ch.count(), here.InFlight())
		}
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE attempts <> 1 OR lease_owner <> 0 OR next_at IS NOT NULL"); n != 0 {
			t.Errorf("%d rows do not look like delivered by one attempt", n)
		}
		if n := f.Count(t, "SELECT count(*) FROM "+notify.AllAttempts+" AS na"); n != 30 {
			t.Errorf("%d attempts are kept of 30", n)
		}
	})
}

// What is committed has a claim of this process in its row while it is sent, so that other
// nodes can take it over if the process dies.
func TestWhatIsCreatedAsClaimedIsLeasedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		asked, answer := make(chan struct{}), make(chan struct{})
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			close(asked)
			<-answer
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		f, _ := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 10, forgiving(d))
		pay(t, f)
		<-asked
		var row notify.Delivery
		err := d.NewSelect().Model(&row).Scan(t.Context())
		close(answer)
		if err != nil || row.Status != notify.Sending || row.Attempts != 1 || row.LeaseOwner != d.Boot() || row.NextAt != nil ||
			*row.Due() <= d.Now() {
			t.Errorf("while it is being sent its row is %+v, %v", row, err)
		}
		waittest.Until(t, "it is notified", func() bool { return delivered(f, t) == 1 })
	})
}

func TestATransactionThatFailsReturnsItsSlots(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := &fakeChannel{}
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 1, forgiving(d))
		failed := errors.New("no")
		for range 3 {
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 10, Currency: "CNY",
				Supplier: "sp-main",
			})
			if err != nil {
				t.Fatal(err)
			}
			err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				if _, err := f.Processor.Confirm(ctx, tx, []*payment.Message{f.Callback(o.OrderNo, "T"+o.OrderNo, 10)}); err != nil {
					return err
				}
				if n := reserved(t, ctx, tx); n != 1 {
					t.Errorf("%d reserved: this test tests nothing", n)
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatal(err)
			}
		}
		if here.InFlight() != 0 || ch.count() != 0 {
			t.Errorf("%d slots held, %d sent of what was never committed", here.InFlight(), ch.count())
		}
		pay(t, f)
		waittest.Until(t, "the slot is free for what is committed", func() bool { return delivered(f, t) == 1 })
	})
}

// Rows that already wait come first, and rows held back by a breaker or a rate are not
// bypassed.
func TestNothingIsReservedPastALineABreakerOrARate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		answer := make(chan struct{})
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			<-answer
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		b := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return never })
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n", MaxInFlight: 20}, ch, 20, b)
		for range 8 {
			pay(t, f)
		}
		// A merchant that proved nothing yet may have five at a time.
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'sending'"); n != 5 || here.InFlight() != 5 {
			t.Errorf("%d are being sent, %d slots held: more than it may have", n, here.InFlight())
		}
		close(answer)
		waittest.Until(t, "the five are notified", func() bool { return delivered(f, t) == 5 })

		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return b.ByOperator(ctx, tx, f.M1.Recipient(), breaker.OpenIt, "li", "test")
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		pay(t, f)
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'queued'"); n != 4 {
			t.Errorf("%d wait: an open breaker was ignored", n)
		}
	})
}

// What is committed while all slots are in use keeps its claim and waits for one; at
// the end of the process it is released as if it had never been tried.
func TestWhatFindsNoSlotAfterItsCommitWaitsOrIsReleased(t *testing.T) {
	t.Parallel()
	for _, ending := range []bool{false, true} {
		d := dbtest.Postgres(t) // two transactions at a time
		answer, asked := make(chan struct{}), make(chan struct{}, 2)
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			asked <- struct{}{}
			<-answer
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 1, forgiving(d))
		others := paid(t, paymenttest.New(t, d, paymenttest.Options{Shared: true}), 1)
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 10, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			if _, err := f.Processor.Confirm(ctx, tx, []*payment.Message{f.Callback(o.OrderNo, "T"+o.OrderNo, 10)}); err != nil {
				return err
			}
			if n := reserved(t, ctx, tx); n != 1 {
				t.Errorf("%d reserved: this test tests nothing", n)
			}
			here.Offer(others)
			<-asked // the only slot is the other's
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'sending'"); n != 2 || ch.count() != 1 {
			t.Errorf("%d are claimed, %d were sent, with one slot", n, ch.count())
		}
		if !ending {
			close(answer)
			waittest.Until(t, "both are notified", func() bool { return delivered(f, t) == 2 })
			continue
		}
		time.AfterFunc(100*time.Millisecond, func() { close(answer) })
		stop(here, 10*time.Second)
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0 AND lease_owner = 0"); n != 1 ||
			ch.count() != 1 {
			t.Errorf("%d are released, %d were sent", n, ch.count())
		}
	}
}
