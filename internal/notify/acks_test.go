package notify_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// A node that is killed between a merchant's answer and the commit of its result does not notify
// the merchant again. Without Recover, ReleaseLeases makes all three due.
func TestWhatWasAcknowledgedBeforeAKillIsNotSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 3)
		folder := t.TempDir()
		open := func() *notify.Acks {
			acks, err := notify.OpenAcks(folder, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(acks.Close)
			return acks
		}
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		const deadBoot = 99
		exec("UPDATE deliveries SET status = 'sending', attempts = 1, lease_owner = ?, next_at = ?", deadBoot, d.Now()+60_000_000)
		exec("UPDATE deliveries SET attempts = 2 WHERE id = ?", nudges[0].Delivery) // its second attempt has no answer
		before := open()
		for _, n := range nudges {
			notify.Note(before, notify.Attempt{
				ID: d.NewID(), DeliveryID: n.Delivery, RecipientID: n.Recipient, Number: 1, Class: notify.OK, HTTPStatus: 200,
				StartedAt: d.Now(), TookUS: 900, Node: "n1", URL: "http://m1.test/n", ResponseBody: []byte("success"),
			})
		}
		before.Close()

		acks := open()
		left, err := acks.Recover(t.Context(), d, []int64{deadBoot})
		if err != nil || len(left) != 2 {
			t.Fatalf("%d are recovered, %v", len(left), err)
		}
		if kept := notify.Earlier(open()); len(kept) != 2 {
			t.Errorf("killed again before it wrote their results, it would remember %d", len(kept))
		}
		if n, err := notify.ReleaseLeases(t.Context(), d, []int64{deadBoot}); err != nil || n != 1 {
			t.Fatalf("released %d, %v", n, err)
		}
		ch := &fakeChannel{}
		disp := dispatcherOf(t, f, ch, 50, breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return never }), acks)
		disp.Finish(left)
		waittest.Until(t, "the two are delivered", func() bool { return delivered(f, t) == 2 })
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE attempts = 1 AND first_class = 'ok' AND first_body IS NOT NULL AND finished_at IS NOT NULL")
		if n := ch.count(); n != 0 {
			t.Errorf("%d were sent again", n)
		}
		disp.Pull([]int64{f.M1.ID})
		waittest.Until(t, "the third is delivered", func() bool { return delivered(f, t) == 3 })
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE attempts = 3")
		if n := ch.count(); n != 1 {
			t.Errorf("%d calls in all, want the third's", n)
		}
		if again, err := acks.Recover(t.Context(), d, []int64{deadBoot, d.Boot()}); err != nil || len(again) != 0 {
			t.Errorf("%d are recovered again, %v", len(again), err)
		}
		if kept := notify.Earlier(open()); len(kept) != 0 {
			t.Errorf("the next start reads %d that are committed", len(kept))
		}
	})
}

// What cannot have been written whole is not believed, and the files do not grow.
func TestAcknowledgementsAreReadToTheLastWholeOne(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const limit = 2000
	write := func(from, to int64) {
		t.Helper()
		acks, err := notify.OpenSmallAcks(folder, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer acks.Close()
		for id := from; id <= to; id++ {
			notify.Note(acks, notify.Attempt{DeliveryID: id, Number: 1, Class: notify.OK, URL: "http://m1.test/n"})
		}
	}
	earlier := func() map[int64]bool {
		t.Helper()
		acks, err := notify.OpenSmallAcks(folder, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer acks.Close()
		return notify.Earlier(acks)
	}
	write(1, 3)
	name := filepath.Join(folder, "acks.0")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []int{1, 7, 9, len(whole) / 3} {
		if err := os.WriteFile(name, whole[:len(whole)-torn], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := earlier(); len(got) != 2 || got[3] {
			t.Errorf("with %d bytes missing: %v", torn, got)
		}
	}
	write(4, 4) // over the torn one
	if got := earlier(); len(got) != 3 || !got[4] || got[3] {
		t.Errorf("after the torn one: %v", got)
	}
	for id := int64(5); id < 200; id += 7 { // many lives
		write(id, id+6)
		got := earlier()
		for back := range int64(4) {
			if !got[id+6-back] {
				t.Fatalf("%d is forgotten after %d: %v", id+6-back, id+6, got)
			}
		}
	}
	for i := range 2 {
		if s, err := os.Stat(filepath.Join(folder, []string{"acks.0", "acks.1"}[i])); err != nil || s.Size() > limit+500 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}
