package notify_test

import (
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/payment/paymenttest"
)

// What an order that comes alone may send to the database, from its creation to the committed
// result of its notification. SQLite has no round trips: there each kind of row is a statement.
func TestAnOrderThatComesAloneSendsFewStatements(t *testing.T) {
	t.Parallel()
	const warm, orders = 5, 20
	for engine, most := range map[string][2]int64{"postgres": {7, 5}, "sqlite": {21, 21}} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := dbtest.SQLite(t)
			if engine == "postgres" {
				d = dbtest.Postgres(t)
			}
			ch := &fakeChannel{}
			f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 4, forgiving(d))
			var statements, trips int64
			for i := range warm + orders {
				if i == warm {
					statements, trips = d.Traffic()
				}
				pay(t, f)
				waittest.Until(t, "its result is committed", func() bool { return ch.count() == i+1 && here.InFlight() == 0 })
			}
			s, r := d.Traffic()
			s, r = s-statements, r-trips
			if s > most[0]*orders || r > most[1]*orders {
				t.Errorf("%d statements in %d round trips for %d orders, want at most %d in %d for each", s, r, orders, most[0], most[1])
			}
			f.Want(t, warm+orders, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND first_class = 'ok' AND attempts = 1")
		})
	}
}
