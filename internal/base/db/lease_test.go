package db_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestOneNodeHoldsALease(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresMigratedURL(t)
	one, two := dbtest.Open(t, db.Options{URL: url}), dbtest.Open(t, db.Options{URL: url})
	take := func(d *db.DB, ttl time.Duration) bool {
		t.Helper()
		ok, err := d.Lease(t.Context(), "watch", ttl)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for _, what := range []string{"get", "renew"} {
		if !take(one, time.Minute) {
			t.Fatalf("no other node wants the lease, and yet the first one does not %s it", what)
		}
	}
	if take(two, time.Minute) {
		t.Fatal("two nodes hold one lease")
	}
	if !take(one, -time.Second) || !take(two, time.Minute) {
		t.Fatal("a lease that ran out must go to the next node")
	}
	for _, d := range []*db.DB{one, two} {
		if take(one, time.Minute) {
			t.Fatal("another node's lease was yielded")
		}
		if err := d.Yield(t.Context(), "watch"); err != nil {
			t.Fatal(err)
		}
	}
	if !take(one, time.Minute) {
		t.Fatal("a yielded lease must go to the next node")
	}
}
