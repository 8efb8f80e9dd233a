package notify_test

import (
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/payment/paymenttest"
)

// What an order that comes alone may send to the database, from its creation to the committed
// result of its notification: 7 statements in 5 round trips, and one more on a busy machine, where two
// results may share a transaction. SQLite has no round trips: there each kind of row is a statement.
func TestAnOrderThatComesAloneSendsFewStatements(t *testing.T) {
	t.Parallel()
	const warm, orders = 5, 20
	for engine, most := range map[string][2]int64{"postgres": {8, 6}, "sqlite": {22, 22}} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := dbtest.SQLite(t)
			if engine == "postgres" {
				d = dbtest.Postgres(t)
			}
			ch := &fakeChannel{}
			f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 4, forgiving(d))
			looks := int64(0) // each is a statement too
			sent := func(n int) (statements, trips int64) {
				waittest.Until(t, "all results are committed", func() bool {
					looks++
					return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'delivered'") == int64(n)
				})
				statements, trips = d.Traffic()
				return statements - looks, trips - looks
			}
			pays := func(n int) {
				for range n {
					told := ch.count() + 1
					pay(t, f)
					waittest.Until(t, "its merchant is notified", func() bool { return ch.count() == told && here.InFlight() == 0 })
				}
			}
			pays(warm)
			statements, trips := sent(warm)
			pays(orders)
			s, r := sent(warm + orders)
			s, r = s-statements, r-trips
			if s > most[0]*orders || r > most[1]*orders {
				t.Errorf("%d statements in %d round trips for %d orders, want at most %d in %d for each", s, r, orders, most[0], most[1])
			}
			f.Want(t, warm+orders, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND first_class = 'ok' AND attempts = 1")
		})
	}
}
