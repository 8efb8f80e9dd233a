package paymenttest

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// LockOrder are the tables whose rows transactions lock in this order, each by id.
var LockOrder = []string{"orders", "payment_attempts", "refunds", "payouts", "disputes", "skus", "accounts"}

// Watched is dbtest.Postgres for a test that fails if a transaction locks against LockOrder. url is
// for further nodes.
func Watched(t testing.TB) (d *db.DB, locks *dbtest.Locks, url string) {
	t.Helper()
	d, locks, url = dbtest.WatchedPostgres(t, LockOrder...)
	t.Cleanup(func() {
		for _, broken := range locks.Broken() {
			t.Errorf("a transaction locks %s", broken)
		}
	})
	return d, locks, url
}
