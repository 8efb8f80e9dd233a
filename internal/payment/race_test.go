package payment_test

import (
	"context"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/stock"
)

// racePairs is how many orders a callback and their timeout race for. A release
// shows the full numbers; every other run shows that nothing has changed.
func racePairs(d *db.DB) int {
	full := os.Getenv("E2E_FULL") == "1"
	switch {
	case full && d.IsPostgres():
		return 30_000
	case full:
		return 100_000
	case testing.Short(): // under the race detector
		return 1000
	case d.IsPostgres():
		return 2000
	default:
		return 5000
	}
}

// raceBatch is how many pairs race at one time.
const raceBatch = 500

func TestCallbackAndTimeoutNeverBothWin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
		least := racePairs(d)
		most := least + 10*raceBatch // a slow machine needs some to find the moment
		f.AddSKU(t, "tea", int64(most))
		var pairs, paid, closed int
		window, lead := 200*time.Millisecond, time.Duration(0)
		start := time.Now()
		raced := func() bool { return min(paid, closed) >= pairs/20 }
		for !t.Failed() && (pairs < least || !raced() && pairs < most) {
			orders := createMany(t, f, raceBatch)
			began := time.Now()
			p, c := race(t, f, orders, window, lead)
			// The next batch's expiry times are spread over as long as this one took, and the
			// side that lost more often starts earlier: both sides win often on any machine.
			window = min(max(time.Since(began), 20*time.Millisecond), 10*time.Second)
			lead += time.Duration(c-p) * window / time.Duration(4*raceBatch)
			pairs, paid, closed = pairs+raceBatch, paid+p, closed+c
		}
		t.Logf("%d pairs in %s: %d paid, %d closed", pairs, time.Since(start).Round(time.Millisecond), paid, closed)
		if !raced() {
			t.Errorf("no race: %d paid, %d closed", paid, closed)
		}
		f.Want(t, int64(most-paid), "SELECT stock FROM skus")
		checkRaceBooks(t, f, pairs, paid, closed)
	})
}

// checkRaceBooks holds what the callers heard against every table.
func checkRaceBooks(t *testing.T, f *paymenttest.Fixture, pairs, paid, closed int) {
	t.Helper()
	n, p, c := int64(pairs), int64(paid), int64(closed)
	f.Want(t, p, "SELECT count(*) FROM orders WHERE status = 'paid' AND version = 2")
	f.Want(t, c, "SELECT count(*) FROM orders WHERE status = 'closed' AND version = 2")
	f.Want(t, 0, "SELECT count(*) FROM orders WHERE status = 'closed' AND closed_at < expires_at")
	f.Want(t, n, "SELECT count(*) FROM "+order.AllHistory+" AS oh WHERE from_status = 'pending'")
	f.Want(t, p, "SELECT count(*) FROM transfers WHERE ref LIKE 'paid:%'")
	f.Want(t, n, "SELECT count(*) FROM transfers") // the money that came late is held
	f.Want(t, p, "SELECT count(*) FROM "+notify.AllEvents+" AS e WHERE type = 'order.paid'")
	f.Want(t, c, "SELECT count(*) FROM "+notify.AllEvents+" AS e WHERE type = 'order.closed'")
	f.Want(t, n, "SELECT count(*) FROM deliveries")
	f.Want(t, c, "SELECT count(*) FROM exceptions WHERE kind = 'late_payment'")
	f.Want(t, p, "SELECT sold FROM skus")
	f.Want(t, 0, "SELECT locked FROM skus")
}

func createMany(t *testing.T, f *paymenttest.Fixture, n int) []*order.Order {
	t.Helper()
	orders := make([]*order.Order, n)
	parallel(64, n, func(i int) {
		o, _, err := submit(f, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY", Supplier: "sp-main", ExpiresIn: 3600,
			Items: []stock.Line{{SKU: "tea", Quantity: 1}},
		})
		if err != nil {
			t.Errorf("create: %v", err)
			return
		}
		orders[i] = o
	})
	if t.Failed() {
		t.FailNow()
	}
	return orders
}

// submit creates an order of m1 as a merchant does, which repeats its request while it reads "busy".
func submit(f *paymenttest.Fixture, r payment.CreateRequest) (o *order.Order, created bool, err error) {
	err = dbtest.Repeat(func() error {
		o, created, err = f.Processor.Create(context.Background(), f.M1, r)
		return err
	})
	return o, created, err
}

// race lets the orders run out one after another over window, sends each one's
// callback at about that moment less lead, and says how many callers heard "paid" and how
// many "too late".
func race(t *testing.T, f *paymenttest.Fixture, orders []*order.Order, window, lead time.Duration) (paid, closed int) {
	t.Helper()
	base, span := f.DB.Now(), window.Microseconds()
	_, err := f.DB.NewRaw("UPDATE orders SET next_at = ? + id % ?, expires_at = ? + id % ? WHERE status = 'pending'", base, span, base,
		span).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const jitter = 5000 // µs between the two: now this side is first, now that
	sendAt := make(map[int64]int64, len(orders))
	for _, o := range orders {
		sendAt[o.ID] = o.ID%span - lead.Microseconds() + rand.Int64N(2*jitter) - jitter
	}
	slices.SortFunc(orders, func(a, b *order.Order) int { return int(sendAt[a.ID] - sendAt[b.ID]) })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var clock sync.WaitGroup
	var over atomic.Bool
	expired := 0
	clock.Go(func() {
		for !over.Load() {
			n, err := f.Processor.Expire(ctx)
			if err != nil {
				t.Errorf("expire: %v", err)
				return
			}
			expired += n
		}
	})
	outs := make([]payment.Outcome, len(orders))
	parallel(64, len(orders), func(i int) {
		o := orders[i]
		time.Sleep(time.Duration(base+sendAt[o.ID]-f.DB.Now()) * time.Microsecond) // callbacks come at their own moments
		out, err := paymenttest.Send(ctx, f.Processor, f.Callback(o.OrderNo, "T"+o.OrderNo, o.Amount))
		if err != nil {
			t.Errorf("take %s: %v", o.OrderNo, err)
		}
		outs[i] = out
	})
	over.Store(true)
	clock.Wait()
	for _, out := range outs {
		switch out.Name {
		case payment.Paid:
			paid++
		case exception.LatePayment:
			closed++
		default:
			t.Errorf("outcome %+v", out)
		}
	}
	if expired != closed && !t.Failed() {
		t.Errorf("the timeout closed %d orders, %d callbacks were too late", expired, closed)
	}
	return paid, closed
}

// parallel runs work(0) … work(n-1) on a few goroutines, in order of start.
func parallel(workers, n int, work func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(i)
			}
		})
	}
	wg.Wait()
}

// TestReadThenWriteLetsBothWin is the negative control: the same race, decided by
// a read and written afterwards. If it ever passes unharmed, the test above shows
// nothing.
func TestReadThenWriteLetsBothWin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{ByHand: true})
		f.AddSKU(t, "tea", raceBatch)
		orders := createMany(t, f, raceBatch)
		both, rounds := 0, 0
		for ; both == 0 && rounds < 40 && !t.Failed(); rounds++ { // on a busy machine one side may win a whole round
			if _, err := d.NewRaw("UPDATE orders SET status = ?", order.Pending).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			both = raceNaively(t, d, orders)
		}
		t.Logf("%d of %d orders were paid and closed in round %d", both, len(orders), rounds)
		if both == 0 {
			t.Error("read-then-write did no harm: this race is too weak to show anything")
		}
	})
}

// raceNaively moves each order to paid and to closed at the same moment, and returns how many
// reached both.
func raceNaively(t *testing.T, d *db.DB, orders []*order.Order) int {
	t.Helper()
	var both atomic.Int64
	parallel(16, len(orders), func(i int) {
		var wins atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for _, to := range []order.Status{order.Paid, order.Closed} {
			wg.Go(func() {
				<-begin
				if naiveMove(t, d, orders[i].ID, to) {
					wins.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		if wins.Load() == 2 {
			both.Add(1)
		}
	})
	return int(both.Load())
}

// naiveMove decides by what it has read.
func naiveMove(t *testing.T, d *db.DB, id int64, to order.Status) bool {
	var status order.Status
	if err := d.NewRaw("SELECT status FROM orders WHERE id = ?", id).Scan(t.Context(), &status); err != nil {
		t.Error(err)
		return false
	}
	if status != order.Pending {
		return false
	}
	if _, err := d.NewRaw("UPDATE orders SET status = ? WHERE id = ?", string(to), id).Exec(t.Context()); err != nil {
		t.Error(err)
		return false
	}
	return true
}

// TestTwoNodesDoNotDeadlockOnSharedStock pays orders of three articles, in every
// order of the three, through two nodes at once.
func TestTwoNodesDoNotDeadlockOnSharedStock(t *testing.T) {
	t.Parallel()
	own := newOwnDatabase(t)
	o := db.Options{URL: own.url}
	nodes := []*db.DB{dbtest.Open(t, o), dbtest.Open(t, o)}
	first := paymenttest.New(t, nodes[0], paymenttest.Options{})
	skus := []string{"a", "b", "c"}
	const n = 4000
	for _, sku := range skus {
		first.AddSKU(t, sku, 6*n)
	}
	fixtures := []*paymenttest.Fixture{first, paymenttest.New(t, nodes[1], paymenttest.Options{Shared: true})}

	var paid, cancelled atomic.Int64
	var bought [3]atomic.Int64
	parallel(256, n, func(i int) {
		makes, settles := fixtures[i%2], fixtures[i/2%2]
		var lines []stock.Line
		quantity := [3]int64{}
		for _, k := range rand.Perm(3) {
			quantity[k] = 1 + rand.Int64N(3)
			lines = append(lines, stock.Line{SKU: skus[k], Quantity: quantity[k]})
		}
		o, _, err := submit(makes, payment.CreateRequest{
			OutTradeNo: makes.Out(), Amount: 1 + int64(i), Currency: "CNY", Supplier: "sp-main", Items: lines,
		})
		if err != nil {
			t.Errorf("create: %v", err)
			return
		}
		if i%5 == 4 {
			if err := dbtest.Repeat(func() error {
				_, err := settles.Processor.Cancel(context.Background(), settles.M1, o.OrderNo)
				return err
			}); err != nil {
				t.Errorf("cancel: %v", err)
			}
			cancelled.Add(1)
			return
		}
		out, err := paymenttest.Send(context.Background(), settles.Processor, settles.Callback(o.OrderNo, "T"+strconv.Itoa(i), o.Amount))
		if err != nil || out.Name != payment.Paid {
			t.Errorf("take: %+v, %v", out, err)
			return
		}
		paid.Add(o.Amount)
		for k := range quantity {
			bought[k].Add(quantity[k])
		}
	})
	for k, sku := range skus {
		want := bought[k].Load()
		first.Want(t, want, "SELECT sold FROM skus WHERE sku = ?", sku)
		first.Want(t, 6*n-want, "SELECT stock FROM skus WHERE sku = ?", sku)
	}
	first.Want(t, 0, "SELECT CAST(sum(locked) AS BIGINT) FROM skus")
	first.Want(t, paid.Load(), "SELECT CAST(sum(amount) AS BIGINT) FROM transfers")
	first.Want(t, cancelled.Load(), "SELECT count(*) FROM orders WHERE status = 'closed'")

	if got := own.deadlocks(t); got != 0 {
		t.Errorf("%d deadlocks among %d orders", got, n)
	}
	// One of our own making shows that the counter counts.
	provokeDeadlock(t, dbtest.Open(t, o))
	if got := own.deadlocks(t); got != 1 {
		t.Errorf("the counter is %d after one deadlock", got)
	}
}

// ownDatabase is one in which the server's counter of deadlocks is this test's
// alone.
type ownDatabase struct {
	admin     *db.DB
	name, url string
}

// newOwnDatabase makes one that looks for deadlocks early. By default the server
// does so after a second, later than the program gives up a lock: they would
// happen and never be counted.
func newOwnDatabase(t *testing.T) *ownDatabase {
	t.Helper()
	server := dbtest.PostgresURL(t)
	admin := dbtest.Open(t, db.Options{URL: server})
	name := "t_" + strconv.FormatInt(admin.NewID(), 36)
	for _, sql := range []string{"CREATE DATABASE " + name, "ALTER DATABASE " + name + " SET deadlock_timeout = '20ms'"} {
		if _, err := admin.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("search_path")
	u.Path, u.RawQuery = "/"+name, q.Encode()
	return &ownDatabase{admin, name, u.String()}
}

// deadlocks ends the database's connections, since they report when they end,
// and reads the counter.
func (o *ownDatabase) deadlocks(t *testing.T) (n int64) {
	t.Helper()
	var ended []bool
	err := o.admin.NewRaw("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = ?", o.name).Scan(t.Context(),
		&ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.admin.NewRaw("SELECT deadlocks FROM pg_stat_database WHERE datname = ?", o.name).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// provokeDeadlock locks two rows in both orders.
func provokeDeadlock(t *testing.T, d *db.DB) {
	t.Helper()
	var holding, wg sync.WaitGroup
	holding.Add(2)
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		wg.Go(func() {
			tx, err := d.BeginTx(t.Context(), nil)
			if err != nil {
				t.Error(err)
				holding.Done()
				return
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.NewRaw("UPDATE skus SET sold = sold WHERE sku = ?", pair[0]).Exec(t.Context())
			holding.Done()
			if err != nil {
				t.Error(err)
				return
			}
			holding.Wait()
			_, _ = tx.NewRaw("UPDATE skus SET sold = sold WHERE sku = ?", pair[1]).Exec(t.Context())
		})
	}
	wg.Wait()
}
