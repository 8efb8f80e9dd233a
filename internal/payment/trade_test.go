package payment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// tradeRounds is how often two nodes race for one trade number.
func tradeRounds() int {
	if testing.Short() {
		return 60
	}
	return 400
}

// bothBooked counts trade numbers that have paid an order while their money is in suspense.
const bothBooked = "SELECT count(*) FROM payment_attempts AS a JOIN exceptions AS x ON x.held_ref = 'held:' || CAST(a.account_id AS TEXT) || ':' || a.supplier_trade_no" +
	" WHERE a.status = 'succeeded' AND a.order_id <> 0"

// One trade number comes to two nodes at the same moment: once for an order that it pays,
// once for none, or for another one of another amount. Whichever is first, its money is
// booked once.
func TestATradeIsNeverBothHeldAndPaid(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		other := paymenttest.New(t, d, paymenttest.Options{Shared: true}).Processor
		n := tradeRounds()
		parallel(4, n, func(i int) {
			pays, tradeNo := create(t, f, nil), fmt.Sprint("T", i)
			wrong, amount := underKey(f.Callback(fmt.Sprint("unknown-", i), tradeNo, 1999), "wrong "+tradeNo), exception.UnknownOrder
			if i%2 == 1 {
				dear := create(t, f, func(r *payment.CreateRequest) { r.Amount = 2500 })
				wrong, amount = underKey(f.Callback(dear.OrderNo, tradeNo, 1999), "wrong "+tradeNo), exception.AmountMismatch
			}
			var both sync.WaitGroup
			take := func(p *payment.Processor, m *payment.Message, want string) {
				out, err := paymenttest.Send(context.Background(), p, m)
				if err != nil || out.Name != want {
					t.Errorf("%s: %+v, %v, want %s", tradeNo, out, err, want)
				}
			}
			both.Go(func() { take(f.Processor, f.Callback(pays.OrderNo, tradeNo, 1999), payment.Paid) })
			both.Go(func() { take(other, wrong, amount) })
			both.Wait()
		})
		f.Want(t, 0, bothBooked)
		f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		f.Want(t, 0, "SELECT count(*) FROM payment_attempts WHERE order_id = 0")
		f.Want(t, int64(n), "SELECT count(*) FROM orders WHERE status = ?", order.Paid)
		wantBalances(t, f, -1999*int64(n), 0, 1999*int64(n))
		f.Want(t, int64(n), "SELECT count(*) FROM exceptions WHERE kind IN ('unknown_order', 'amount_mismatch')")
		t.Logf("%d trade numbers, of which %d were held first", n, f.Count(t, "SELECT count(*) FROM transfers WHERE ref LIKE 'held:%'"))
	})
}

// meet confirms two messages in two transactions of which neither sees the other.
func meet(t *testing.T, f *paymenttest.Fixture, nodes [2]*payment.Processor, messages [2]*payment.Message) (errs [2]error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var read, both sync.WaitGroup
	read.Add(2)
	for i, m := range messages {
		both.Go(func() {
			errs[i] = f.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
				_, err := nodes[i].Confirm(ctx, tx, []*payment.Message{m})
				read.Done()
				if err == nil {
					read.Wait()
				}
				return err
			})
		})
	}
	both.Wait()
	return errs
}

// Without the index by which a payment and held money take one trade number, both commit.
// Only PostgreSQL has two writers at a time.
func TestWithoutItsIndexATradeIsBothHeldAndPaid(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	f := paymenttest.New(t, d, paymenttest.Options{})
	nodes := [2]*payment.Processor{f.Processor, paymenttest.New(t, d, paymenttest.Options{Shared: true}).Processor}
	if _, err := d.NewRaw("DROP INDEX payment_attempts_trade").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(t, f, f.Callback(create(t, f, nil).OrderNo, "T0", 1999)) // makes the accounts, for which both would wait
	take(t, f, f.Callback("unknown", "U0", 1999))
	o := create(t, f, nil)
	errs := meet(t, f, nodes, [2]*payment.Message{f.Callback(o.OrderNo, "T1", 1999), underKey(f.Callback("unknown", "T1", 1999), "wrong")})
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	f.Want(t, 1, bothBooked)
	wantBalances(t, f, -4*1999, 2*1999, 2*1999)
}

// A held trade number is given free by whatever takes it, and what was held before there
// were such rows needs none.
func TestATradeIsTakenFromItsHolding(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		const holding = "SELECT count(*) FROM payment_attempts WHERE order_id = 0 AND status = 'succeeded_surplus' AND supplier_ref = ?"
		outcome(t, f, f.Callback("unknown-1", "T1", 1999), exception.UnknownOrder)
		outcome(t, f, underKey(f.Callback("unknown-2", "T1", 1999), "again"), exception.UnknownOrder)
		f.Want(t, 1, holding, "#T1")
		// Late money has an attempt of its own, which takes the number.
		late := cancelled(t, f, create(t, f, nil))
		outcome(t, f, underKey(f.Callback(late.OrderNo, "T1", 1999), "late"), exception.LatePayment)
		f.Want(t, 0, holding, "#T1")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE supplier_trade_no = 'T1'")
		outcome(t, f, f.Callback(cancelled(t, f, create(t, f, nil)).OrderNo, "T2", 1999), exception.LatePayment)
		f.Want(t, 0, holding, "#T2")
		// A row of before.
		outcome(t, f, f.Callback("unknown-3", "T3", 1999), exception.UnknownOrder)
		if _, err := f.DB.NewRaw("DELETE FROM payment_attempts WHERE supplier_ref = '#T3'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcome(t, f, underKey(f.Callback(create(t, f, nil).OrderNo, "T3", 1999), "pays"), payment.Paid)
		wantBalances(t, f, -3*1999, 2*1999, 1999)
	})
}
