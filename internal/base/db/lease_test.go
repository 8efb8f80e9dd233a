package db_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestOneNodeHoldsALease(t *testing.T) {
	url := dbtest.PostgresURL(t)
	one, two := dbtest.Open(t, db.Options{URL: url}), dbtest.Open(t, db.Options{URL: url})
	ask := func(d *db.DB, ttl time.Duration) bool {
		t.Helper()
		ok, err := d.Lease(t.Context(), "watch", ttl)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for _, what := range []string{"get", "renew"} {
		if !ask(one, time.Minute) {
			t.Fatalf("nobody else wants the lease, and yet the first node does not %s it", what)
		}
	}
	if ask(two, time.Minute) {
		t.Fatal("two nodes hold one lease")
	}
	if !ask(one, -time.Second) || !ask(two, time.Minute) {
		t.Fatal("a lease that ran out must go to whoever asks")
	}
}
