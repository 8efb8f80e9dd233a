package orderquery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/base/work"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

var steps = payment.Steps{Query: []time.Duration{time.Minute, 2 * time.Minute}, Close: []time.Duration{
	0, 10 * time.Second,
	30 * time.Second,
}}

// fixture is a Processor with two suppliers that can be queried, and a Worker.
type fixture struct {
	*paymenttest.Fixture
	t testing.TB
	a *Worker
}

func each(t *testing.T, test func(f *fixture)) { eachOf(t, paymenttest.Options{}, test) }

func eachOf(t *testing.T, o paymenttest.Options, test func(f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(fixtureOf(t, d, o)) })
}

func fixtureOf(t testing.TB, d *db.DB, o paymenttest.Options) *fixture {
	o.Fakes, o.Steps, o.URL = paymenttest.NewFakes("f1", "f2"), steps, "http://127.0.0.1:1/n"
	return open(t, d, o)
}

func open(t testing.TB, d *db.DB, o paymenttest.Options) *fixture {
	f := &fixture{Fixture: paymenttest.New(t, d, o), t: t}
	f.a = New(Options{
		DB: d, Settings: f.Settings, Payments: f.Processor, Calls: f.Calls, Steps: o.Steps, Grace: 15 * time.Minute,
		InFlight: max(o.InFlight, 8),
		Log:      slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { f.a.Close(context.Background()) })
	return f
}

func (f *fixture) exec(query string, args ...any) {
	f.t.Helper()
	if _, err := f.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
}

// order creates an order of a supplier with a status.
func (f *fixture) order(code string, status order.Status) *order.Order {
	f.t.Helper()
	ctx := context.Background()
	o, _, err := f.Processor.Create(ctx, f.M1, payment.CreateRequest{
		OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY", Supplier: code,
		Subject: "tea",
	})
	if err == nil && status != order.Pending {
		_, err = f.Processor.Pay(ctx, f.M1, o.OrderNo, payment.PayRequest{})
	}
	switch status {
	case order.Closing:
		_, err = f.Processor.Cancel(ctx, f.M1, o.OrderNo)
	case order.Paid, order.Failed, order.Closed:
		if status == order.Closed {
			_, err = f.Processor.Cancel(ctx, f.M1, o.OrderNo)
		}
		m := f.callback(o, code)
		m.Content.Status = supplier.Status(status)
		m.Content.Final = true
		f.take(m)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	if o = f.reload(o); o.Status != status {
		f.t.Fatalf("the order is %s, want %s", o.Status, status)
	}
	return o
}

func (f *fixture) callback(o *order.Order, code string) *payment.Message {
	m := f.Callback(o.OrderNo, "T-"+o.OrderNo, o.Amount)
	m.Supplier = f.Entry(f.t, code)
	m.Source.Actor = "supplier:" + code
	return m
}

func (f *fixture) take(m *payment.Message) payment.Outcome {
	f.t.Helper()
	out, err := f.Processor.Submit(context.Background(), m)
	if err != nil {
		f.t.Error(err)
	}
	return out
}

func (f *fixture) reload(o *order.Order) *order.Order {
	f.t.Helper()
	again, err := order.ByNo(context.Background(), f.DB, o.OrderNo)
	if err != nil {
		f.t.Fatal(err)
	}
	return again
}

// due makes orders due now.
func (f *fixture) due(all ...*order.Order) {
	for _, o := range all {
		f.exec("UPDATE orders SET next_at = ? WHERE id = ?", f.DB.Now()-1, o.ID)
	}
}

// push runs a due order once, step by step; false = it was not claimed. Its result is committed
// twice, as when the first commit was not confirmed, which must change nothing.
func (f *fixture) push(o *order.Order, between func()) bool {
	f.t.Helper()
	ctx := context.Background()
	moments, err := payment.Moments(ctx, f.DB, []int64{o.ID})
	if err != nil || len(moments) != 1 {
		return false
	}
	x := work.Slot{ID: o.ID, Lane: moments[0].Supplier}
	got, err := f.a.Claim(ctx, []work.Slot{x}, work.Lease{Owner: f.DB.Boot(), Until: f.DB.Now() + lease.Microseconds()})
	if err != nil || len(got) != 1 {
		return false
	}
	ran := f.a.run(ctx, x, got[0].Row)
	if len(ran.Results) == 0 {
		if err := f.a.Release(ctx, got[0].Row, ran.ReleaseAt); err != nil {
			f.t.Fatal(err)
		}
		return false
	}
	if between != nil {
		between()
	}
	for range 2 {
		if err := f.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			committed, err := f.a.commit(ctx, tx, ran.Results)
			if err == nil {
				committed()
			}
			return err
		}); err != nil {
			f.t.Fatal(err)
		}
	}
	return true
}

var answers = []supplier.AnswerState{
	supplier.AnswerPaid, supplier.AnswerFailed, supplier.AnswerClosed, supplier.AnswerPaying, supplier.AnswerNotFound,
	supplier.AnswerUnknown,
}

// ends maps each status to the resulting status per answer.
var ends = map[order.Status][]order.Status{
	order.Pending: {order.Paid, order.Failed, order.Closed, order.Pending, order.Pending, order.Pending},
	order.Paying:  {order.Paid, order.Failed, order.Paying, order.Paying, order.Paying, order.Paying},
	order.Closing: {order.Paid, order.Failed, order.Closed, order.Closed, order.Closing, order.Closing},
	order.Paid:    {order.Paid, order.Paid, order.Paid, order.Paid, order.Paid, order.Paid},
	order.Failed:  {order.Failed, order.Failed, order.Failed, order.Failed, order.Failed, order.Failed},
	order.Closed:  {order.Closed, order.Closed, order.Closed, order.Closed, order.Closed, order.Closed},
}

// Every status and every answer, with the payment's callback before, during and after the call:
// the money is booked once, the merchant is notified once, and whatever came too late is an
// exception.
func TestEveryAnswerMeetsEveryStatusAndEveryMomentOfTheCallback(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		for status, want := range ends {
			for i, says := range answers {
				for _, when := range []string{"never", "before", "between", "after"} {
					name := fmt.Sprintf("%s/%s/callback %s", status, says, when)
					f.Fakes["f1"].Says(says)
					o := f.order("f1", status)
					f.exec("DELETE FROM exceptions")
					final, late := want[i], says == supplier.AnswerPaid && (status == order.Failed || status == order.Closed)
					callback := func() { f.take(f.callback(o, "f1")) }
					if when == "before" {
						callback()
					}
					between := func() {
						if when == "between" {
							callback()
						}
					}
					f.due(o)
					switch {
					case status == order.Paying || status == order.Closing:
						if queried := f.push(o, between); queried != (when != "before") {
							t.Errorf("%s: asked %v", name, queried)
						}
					default: // only a person asks
						if when == "between" {
							f.Fakes["f1"].OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
								callback()
								return paymenttest.FakeAnswer(r, says), nil
							})
						}
						if _, err := f.a.Query(t.Context(), o.OrderNo); err != nil && says != supplier.AnswerUnknown {
							t.Errorf("%s: %v", name, err)
						}
					}
					if when == "after" {
						callback()
					}
					switch when {
					case "before", "between":
						if status.Open() {
							final = order.Paid
						} else if status != order.Paid {
							late = true
						}
					case "after":
						if final.Open() {
							final = order.Paid
						} else if final != order.Paid {
							late = true
						}
					}
					got := f.reload(o)
					if got.Status != final {
						t.Errorf("%s: the order is %s, want %s", name, got.Status, final)
					}
					once := int64(0)
					if final == order.Paid {
						once = 1
					}
					f.Want(t, once, "SELECT count(*) FROM transfers WHERE ref = ?", payment.LedgerRefs(o.ID)[0])
					f.Want(t, once, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'order.paid'", o.ID)
					exceptions := int64(0)
					if late {
						exceptions = 1
					}
					if n := f.Count(t, "SELECT count(*) FROM exceptions WHERE order_id = ?", o.ID); n != exceptions {
						t.Errorf("%s: %d exceptions, want %d", name, n, exceptions)
					}
					if got.Status.Open() && (got.NextAt == nil || *got.NextAt <= f.DB.Now()) &&
						(status == order.Paying || status == order.Closing) {
						t.Errorf("%s: nothing will ask again", name)
					}
				}
			}
		}
	})
}

// An answer that changes an order records its call.
func TestAnAnswerIsTheSourceOfItsChange(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].Says(supplier.AnswerPaid)
		o := f.order("f1", order.Paying)
		f.due(o)
		if !f.push(o, nil) {
			t.Fatal("it was not asked about")
		}
		got := f.reload(o)
		if got.Status != order.Paid || got.QueriedAt == nil || got.QueryTries != 1 {
			t.Errorf("order %+v", got)
		}
		f.Want(t, 1, "SELECT count(*) FROM "+order.AllHistory+
			" AS h WHERE h.order_id = ? AND to_status = 'paid' AND cause = 'query' AND source_kind = 'call'"+
			" AND actor = 'supplier:f1' AND source_id = (SELECT max(id) FROM supplier_calls WHERE op = 'query' AND status = 'paid')", o.ID)
		f.Want(t, 0, "SELECT count(*) FROM callbacks")
		if out := f.take(f.callback(o, "f1")); out.Name != payment.Repeat {
			t.Errorf("its callback: %+v", out)
		}
		f.Want(t, 1, "SELECT count(*) FROM transfers")
	})
}

func TestAnOrderIsClosedAtItsSupplierFirst(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		o := f.order("f1", order.Closing)
		f.due(o)
		f.Fakes["f1"].OnClose(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
			return paymenttest.FakeAnswer(r, supplier.AnswerUnknown), nil // "being paid": asked again before anything is believed
		})
		f.push(o, nil)
		if got := f.reload(o); got.Status != order.Closing || got.QueryTries != 1 {
			t.Errorf("after a refused close: %+v", got)
		}
		f.due(o)
		f.Fakes["f1"].OnClose(nil)
		f.push(o, nil)
		got := f.reload(o)
		if got.Status != order.Closed || got.CloseReason != "cancel" {
			t.Errorf("order %+v", got)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE order_id = ? AND status = 'closed'", o.ID)
		if _, _, n := f.Fakes["f1"].Count(o.OrderNo); n != 2 {
			t.Errorf("closed %d times", n)
		}
	})
}

// "Not found" is believed if the payment is old enough and the supplier never knew it.
func TestNotFoundIsBelievedOfWhatWasNeverKnown(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].OnClose(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
			return paymenttest.FakeAnswer(r, supplier.AnswerNotFound), nil
		})
		for _, c := range []struct {
			name  string
			first supplier.AnswerState
			old   bool
			again bool // its start was repeated a moment ago
			want  order.Status
		}{
			{"young", supplier.AnswerNotFound, false, false, order.Closing},
			{"old", supplier.AnswerNotFound, true, false, order.Closed},
			{"started again", supplier.AnswerNotFound, true, true, order.Closing},
			{"known before", supplier.AnswerPaying, true, false, order.Closing},
			{"unreachable before", supplier.AnswerUnknown, true, false, order.Closed},
		} {
			o := f.order("f1", order.Paying)
			f.due(o)
			f.Fakes["f1"].Says(c.first)
			f.push(o, nil)
			if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
				t.Fatal(err)
			}
			if c.old {
				f.exec("UPDATE payment_attempts SET created_at = created_at - 121000000 WHERE order_id = ?", o.ID)
				if !c.again {
					f.exec("UPDATE supplier_calls SET started_at = started_at - 121000000 WHERE order_id = ? AND op = 'pay'", o.ID)
				}
			}
			f.due(o)
			f.Fakes["f1"].Says(supplier.AnswerNotFound)
			f.push(o, nil)
			if got := f.reload(o); got.Status != c.want {
				t.Errorf("%s: %s, want %s", c.name, got.Status, c.want)
			}
		}
	})
}

// However long a supplier does not know a payment, the buyer may still start it: only an order that
// is closing is closed there.
func TestAnOpenPaymentThatIsNotFoundIsLeftOpen(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		o := f.order("f1", order.Paying)
		for _, table := range []string{"payment_attempts SET created_at = created_at", "supplier_calls SET started_at = started_at"} {
			f.exec("UPDATE "+table+" - 121000000 WHERE order_id = ?", o.ID)
		}
		f.Fakes["f1"].Says(supplier.AnswerNotFound)
		f.due(o)
		f.push(o, nil)
		if got := f.reload(o); got.Status != order.Paying {
			t.Errorf("the order is %s", got.Status)
		}
		if _, queried, closed := f.Fakes["f1"].Count(o.OrderNo); queried == 0 || closed != 0 {
			t.Errorf("queried %d and closed %d times, want no close", queried, closed)
		}
	})
}

// An order without a pay request is queried before it is closed, and nothing is closed at the
// supplier.
func TestAPendingOrderIsAskedBeforeItIsClosed(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Processor.QueryBy(func([]payment.Moment) {})
		for says, want := range map[supplier.AnswerState]order.Status{
			supplier.AnswerPaid: order.Paid, supplier.AnswerNotFound: order.Closed, supplier.AnswerPaying: order.Closing,
			supplier.AnswerUnknown: order.Closing,
		} {
			o := f.order("f1", order.Pending)
			f.exec("UPDATE orders SET created_at = created_at - 121000000, expires_at = ?0, next_at = ?0 WHERE id = ?1", f.DB.Now()-1, o.ID)
			if _, err := f.Processor.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := f.reload(o); got.Status != order.Closing || got.CloseReason != "timeout" {
				t.Fatalf("order %+v", got)
			}
			f.Fakes["f1"].Says(says)
			f.due(o)
			f.push(o, nil)
			if got := f.reload(o); got.Status != want {
				t.Errorf("%s: %s, want %s", says, got.Status, want)
			}
			if _, _, n := f.Fakes["f1"].Count(o.OrderNo); n != 0 {
				t.Errorf("%s: closed %d times", says, n)
			}
			if want == order.Closed {
				f.Want(t, 0, "SELECT count(*) FROM payment_attempts WHERE order_id = ?", o.ID)
			}
		}
		// With ask_pending off, it is closed without a query.
		f.exec("UPDATE suppliers SET query_pending = FALSE")
		f.exec("UPDATE settings SET value = value + 1 WHERE name = 'config_version'")
		if err := f.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := f.order("f1", order.Pending)
		if got, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil || got.Status != order.Closed {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// An order that waits in memory until its timeout is no longer queried as paying: it moves to
// closing first.
func TestAtItsTimeoutAnOrderIsLeftToTheClock(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Processor.QueryBy(func([]payment.Moment) {})
		f.Fakes["f1"].Says(supplier.AnswerPaying)
		o := f.order("f1", order.Paying)
		f.exec("UPDATE orders SET expires_at = ?0, next_at = ?0 WHERE id = ?1", f.DB.Now()-1, o.ID)
		if f.push(o, nil) {
			t.Error("it was queried")
		}
		if jobs, err := f.a.Due(t.Context(), f.Entry(t, "f1").ID, f.DB.Now(), 10); err != nil || len(jobs) != 0 {
			t.Errorf("due for a query: %v, %v", jobs, err)
		}
		if _, err := f.Processor.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.due(o)
		if got := f.reload(o); got.Status != order.Closing || !f.push(o, nil) {
			t.Errorf("order %+v", got)
		}
		if got := f.reload(o); got.Status != order.Closed {
			t.Errorf("order %+v", got)
		}
	})
}

// An answer that the money came and went back pays the order: what went back is booked after that.
func TestRefundedMoneyPaysItsOrder(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
			a := paymenttest.FakeAnswer(r, supplier.AnswerPaid)
			a.Says.RefundTotal = supplier.UnknownTotal
			return a, nil
		})
		o := f.order("f1", order.Paying)
		f.due(o)
		f.push(o, nil)
		if got := f.reload(o); got.Status != order.Paid || got.PaidAmount != 1999 {
			t.Errorf("order %+v", got)
		}
		f.Want(t, 0, "SELECT count(*) FROM exceptions")
	})
}

func TestAfterItsLastStepAPersonLooks(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].Says(supplier.AnswerPaying)
		o := f.order("f1", order.Paying)
		f.exec("UPDATE orders SET expires_at = expires_at + 86400000000 WHERE id = ?", o.ID)
		for n, want := range []int64{0, 0, 1} { // two steps
			f.due(o)
			f.exec("UPDATE orders SET query_tries = ? WHERE id = ?", n-1, o.ID)
			f.push(o, nil)
			f.Want(t, want, "SELECT count(*) FROM exceptions WHERE kind = ? AND order_id = ?", exception.StuckPaying, o.ID)
		}
		if wait := *f.reload(o).NextAt - f.DB.Now(); wait < 23*3600*1_000_000 {
			t.Errorf("asked in %d µs", wait)
		}
		f.Fakes["f1"].Says(supplier.AnswerPaid)
		f.due(o)
		f.push(o, nil)
		if got := f.reload(o); got.Status != order.Paid {
			t.Errorf("order %+v", got)
		}
	})
}

// Of two nodes only one queries. The control claims regardless of the due time, and both query.
func TestTwoNodesAskOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := paymenttest.Options{Fakes: paymenttest.NewFakes("f1"), Steps: steps}
		f := open(t, d, o)
		o.Shared = true
		other := open(t, d, o)
		f.Fakes["f1"].Says(supplier.AnswerPaying)
		race := func(naive bool) (queried int) {
			x := f.order("f1", order.Paying)
			f.due(x)
			var both sync.WaitGroup
			var gate sync.WaitGroup
			gate.Add(2)
			var n atomic.Int32
			met := make(chan struct{})
			for _, node := range []*fixture{f, other} {
				both.Go(func() {
					gate.Done()
					gate.Wait()
					if naive {
						if got := node.reload(x); got.NextAt != nil && *got.NextAt <= d.Now() {
							select { // both have read
							case met <- struct{}{}:
							case <-met:
							}
							n.Add(1)
							node.exec("UPDATE orders SET next_at = ? WHERE id = ?", d.Now()+30_000_000, x.ID)
						}
						return
					}
					if node.push(x, nil) {
						n.Add(1)
					}
				})
			}
			both.Wait()
			return int(n.Load())
		}
		for range 20 {
			if n := race(false); n != 1 {
				t.Fatalf("%d nodes queried", n)
			}
		}
		if n := race(true); n != 2 {
			t.Errorf("the naive claim was made by %d nodes: the test shows nothing", n)
		}
	})
}

// The claims of a process are due again when its node starts; what was answered, or belongs to
// another node, is left unchanged.
func TestAClaimOfAProcessThatEndedIsReleased(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].Says(supplier.AnswerPaying)
		answered, dead, alive := f.order("f1", order.Paying), f.order("f1", order.Paying), f.order("f1", order.Paying)
		f.due(answered, dead, alive)
		if !f.push(answered, nil) {
			t.Fatal("it was not called")
		}
		until := f.DB.Now() + lease.Microseconds()
		for o, boot := range map[*order.Order]int64{dead: 99, alive: 98} {
			if got, err := f.a.Claim(t.Context(), []work.Slot{{ID: o.ID, Lane: o.SupplierID}},
				work.Lease{Owner: boot, Until: until}); err != nil || len(got) != 1 {
				t.Fatalf("%d are claimed, %v", len(got), err)
			}
		}
		f.exec("UPDATE orders SET next_at = ? WHERE id = ?", until-1, answered.ID)
		if n, err := ReleaseLeases(t.Context(), f.DB, []int64{99, f.DB.Boot()}); err != nil || n != 1 {
			t.Errorf("%d are released, %v; want 1", n, err)
		}
		if got := f.reload(dead); *got.NextAt > f.DB.Now() || got.QueryTries != 1 {
			t.Errorf("of the process that ended: due at %d, %d tries", *got.NextAt, got.QueryTries)
		}
		if got := f.reload(alive); *got.NextAt != until {
			t.Errorf("of the other one: due at %d, want %d", *got.NextAt, until)
		}
	})
}

// Orders of an unresponsive supplier delay no others, and attempts are not counted while its
// breaker is open.
func TestADeadSupplierDelaysNoOther(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		const dead, live = 200, 20
		hang := make(chan struct{})
		defer close(hang)
		f.Fakes["f1"].OnQuery(func(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
			select {
			case <-hang:
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			return paymenttest.FakeAnswer(r, supplier.AnswerUnknown), nil
		})
		f.Processor.QueryBy(func([]payment.Moment) {}) // wait until all have arrived
		var all []*order.Order
		for range dead {
			all = append(all, f.order("f1", order.Paying))
		}
		for range live {
			all = append(all, f.order("f2", order.Closing))
		}
		f.Processor.QueryBy(f.a.Offer)
		f.due(all...)
		waittest.Until(t, "the orders at the other supplier are closed, and the breaker of this one is open", func() bool {
			if _, err := f.Processor.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.a.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			return f.Count(t, "SELECT count(*) FROM orders WHERE status = 'closed'") == live && f.a.o.Calls.Down(f.Entry(t, "f1").ID)
		})
		f.Want(t, live, "SELECT count(*) FROM orders WHERE status = 'closed'")
		if !f.a.o.Calls.Down(f.Entry(t, "f1").ID) {
			t.Error("the breaker is closed")
		}
		f.Eventually(t, 0, "SELECT count(*) FROM supplier_calls WHERE state = 'begun'")
		queried := int64(f.Fakes["f1"].Queried())
		f.Eventually(t, queried, "SELECT sum(query_tries) FROM orders WHERE supplier_id = ?", f.Entry(t, "f1").ID)
		if queried > 40 {
			t.Errorf("an unreachable supplier was called %d times", queried)
		}
	})
}

func TestWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		if _, err := f.a.Query(t.Context(), "nothing"); !errors.Is(err, order.ErrNotFound) {
			t.Error(err)
		}
		o := f.order("sp-main", order.Pending)
		if _, err := f.a.Query(t.Context(), o.OrderNo); !errors.Is(err, ErrCannotQuery) {
			t.Error(err)
		}
		f.Fakes["f1"].Says(supplier.AnswerUnknown) // a timeout
		o = f.order("f1", order.Paying)
		before := f.reload(o)
		if _, err := f.a.Query(t.Context(), o.OrderNo); !errors.Is(err, suppliercall.ErrDown) {
			t.Error(err)
		}
		if got := f.reload(o); got.Version != before.Version || *got.NextAt != *before.NextAt || got.Status != before.Status {
			t.Errorf("it has changed: %+v", got)
		}
		f.Fakes["f1"].Says(supplier.AnswerPaid)
		got, err := f.a.Query(t.Context(), o.OrderNo)
		if err != nil || got.State != supplier.AnswerPaid || got.Order.Status != order.Paid || got.Says.TradeNo != "T-"+o.OrderNo {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Only the first time that no step is left, the order is handed on.
func TestAStuckOrderIsRunAgainOnce(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		var opened []int64
		f.a.o.Stuck = func(_ *db.Writes, o *order.Order, supplierID int64) {
			if supplierID != f.Entry(t, "f1").ID {
				t.Errorf("at the supplier %d", supplierID)
			}
			opened = append(opened, o.ID)
		}
		f.Fakes["f1"].Says(supplier.AnswerPaying)
		o := f.order("f1", order.Paying)
		f.exec("UPDATE orders SET expires_at = expires_at + 86400000000 WHERE id = ?", o.ID)
		for n, want := range []int{0, 0, 1, 1, 1} { // two steps
			f.due(o)
			f.exec("UPDATE orders SET query_tries = ? WHERE id = ?", n-1, o.ID)
			f.push(o, nil)
			if len(opened) != want {
				t.Errorf("after query %d: %d, want %d", n, len(opened), want)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = ?", exception.StuckPaying)
	})
}
