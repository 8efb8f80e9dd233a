package notify_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// What a node created as its claim is in no index of due rows: where the node dies, any node
// finds the row by its id once its lease is over.
func TestAClaimOnCreateOutlivesItsNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 3)
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// One is an hour old, one is below what was checked, one is of this moment.
		const deadBoot = 99
		old, checked := db.IDAt(d.Now()-time.Hour.Microseconds()), db.IDAt(d.Now()-2*time.Hour.Microseconds())
		exec("UPDATE settings SET value = ? WHERE name = 'claims_checked'", checked)
		exec("UPDATE deliveries SET status = 'sending', attempts = 1, lease_owner = ?, next_at = NULL, lease_until = ?", deadBoot,
			d.Now()-1)
		exec("UPDATE deliveries SET id = ? WHERE id = ?", old, nudges[0].Delivery)
		exec("UPDATE deliveries SET id = ? WHERE id = ?", checked-1, nudges[1].Delivery)
		if due, _, err := notify.DueRecipients(t.Context(), d, 0, 10); err != nil || len(due) != 0 {
			t.Fatalf("the index has them: %v, %v", due, err)
		}
		ch := &fakeChannel{}
		disp := dispatcher(t, f, ch, 50)
		if err := disp.ReleaseLost(t.Context()); err != nil {
			t.Fatal(err)
		}
		disp.Pull([]int64{f.M1.ID})
		waittest.Until(t, "the lost one is delivered", func() bool { return delivered(f, t) == 1 })
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'delivered' AND attempts = 2", old)
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE status = 'sending'")
		f.Want(t, 1, "SELECT count(*) FROM settings WHERE name = 'claims_checked' AND value > ?", old)

		// The same node starts again: it knows that its earlier boot is over.
		if n, err := notify.ReleaseLeases(t.Context(), d, []int64{deadBoot}); err != nil || n != 1 {
			t.Fatalf("released %d, %v", n, err)
		}
		disp.Pull([]int64{f.M1.ID})
		waittest.Until(t, "what its own boot left is delivered", func() bool { return delivered(f, t) == 2 })
	})
}

// A transaction may commit after the lease of its claims, below the ids that the nodes have read. Its
// row is found before claims_checked passes it, and only then: no other look reads it again.
func TestAClaimThatIsCommittedLateIsFound(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 2)
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ago := func(s time.Duration) int64 { return db.IDAt(d.Now() - s.Microseconds()) }
		disp := dispatcher(t, f, &fakeChannel{}, 50)
		look := func(want int64) {
			t.Helper()
			if err := disp.ReleaseLost(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.Want(t, want, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL")
		}
		exec("UPDATE deliveries SET status = 'sending', attempts = 1, lease_owner = 99, next_at = NULL, lease_until = ?", d.Now()-1)
		exec("UPDATE deliveries SET id = ? WHERE id = ?", ago(-time.Minute), nudges[1].Delivery) // not yet looked at
		exec("UPDATE settings SET value = ? WHERE name = 'claims_checked'", ago(time.Hour))
		soon := ago(-2 * time.Minute)
		exec("UPDATE deliveries SET id = ? WHERE id = ?", soon, nudges[0].Delivery)
		look(0)
		// Committed late: everybody has looked at what is older.
		late := ago(time.Minute)
		exec("UPDATE deliveries SET id = ? WHERE id = ?", late, soon)
		look(0)
		// A while later claims_checked would pass it, unless another node has just moved it.
		exec("UPDATE settings SET value = ? WHERE name = 'claims_checked'", ago(2*time.Minute+5*time.Second))
		exec("UPDATE deliveries SET id = ? WHERE id = ?", ago(2*time.Minute+time.Second), late)
		notify.LastAdvance(disp, d.Now()-time.Minute.Microseconds())
		look(0)
		exec("UPDATE settings SET value = ? WHERE name = 'claims_checked'", ago(2*time.Minute+16*time.Second))
		notify.LastAdvance(disp, d.Now()-time.Minute.Microseconds())
		look(1)
		f.Want(t, 1, "SELECT count(*) FROM settings WHERE name = 'claims_checked' AND value > ?", ago(2*time.Minute+5*time.Second))
	})
}
