package payment_test

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// open counts what is open about a trade number.
func open(t *testing.T, f *paymenttest.Fixture, tradeNo string, want int64) {
	t.Helper()
	f.Want(t, want, "SELECT count(*) FROM exceptions WHERE subject = ? AND state NOT IN ('resolved', 'ignored')", tradeNo)
}

// A Checkout payment comes twice: the session names the order, the intent only itself.
func TestAPaymentThatNamesNoOrderIsARepeatOfTheOneThatDoes(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		unnamed := func(tradeNo string, amount int64) *payment.Message {
			return underKey(f.Callback("", tradeNo, amount), tradeNo+":intent")
		}
		o := create(t, f, nil)
		outcome(t, f, f.Callback(o.OrderNo, "T1", 1999), payment.Paid)
		outcome(t, f, unnamed("T1", 1999), payment.Repeat)
		open(t, f, "T1", 0)
		o = create(t, f, nil)
		outcome(t, f, unnamed("T2", 1999), exception.UnknownOrder)
		if item(t, f, exception.UnknownOrder).HeldRef == "" {
			t.Error("the money is not held until its order is known")
		}
		outcome(t, f, f.Callback(o.OrderNo, "T2", 1999), payment.Paid)
		open(t, f, "T2", 0)
		x := item(t, f, exception.UnknownOrder)
		if x.State != exception.Resolved || x.Outcome != exception.BookedPaid || x.Reference != o.OrderNo || x.HeldRef != "" {
			t.Errorf("%+v", x)
		}
		wantBalances(t, f, -2*1999, 0, 2*1999)
		// Both in one transaction, the payment without an order first.
		o = create(t, f, nil)
		both := []*payment.Message{unnamed("T3", 1999), f.Callback(o.OrderNo, "T3", 1999)}
		var outs []payment.Outcome
		if err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			outs, err = f.Processor.Confirm(ctx, tx, both)
			return err
		}); err != nil || outs[0].Name != payment.Repeat || outs[1].Name != payment.Paid {
			t.Errorf("%+v, %v", outs, err)
		}
		open(t, f, "T3", 0)
		// What contradicts the booking is no repeat.
		outcome(t, f, underKey(unnamed("T3", 1500), "less"), exception.AmountMismatch)
		if x := item(t, f, exception.AmountMismatch); x.OrderNo != o.OrderNo || x.HeldRef != "" {
			t.Errorf("%+v", x)
		}
		other := create(t, f, nil)
		outcome(t, f, underKey(f.Callback(other.OrderNo, "T3", 1999), "other"), exception.DuplicatePayment)
		if reload(t, f, other).Status != order.Pending {
			t.Error("one payment pays two orders")
		}
		wantBalances(t, f, -3*1999, 0, 3*1999)
	})
}

// Whatever was open about a payment ends once it is booked, in any open state.
func TestWhatIsOpenAboutAPaymentEndsWhenItIsBooked(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for kind, first := range map[string]func(*payment.Message){
			exception.UnknownOrder:     func(m *payment.Message) { m.Content.OrderRef = "no-such" },
			exception.AmountMismatch:   func(m *payment.Message) { m.Content.Amount = 1500 },
			exception.CurrencyMismatch: func(m *payment.Message) { m.Content.Currency = "USD" },
			exception.Malformed: func(m *payment.Message) {
				m.Unreadable = &supplier.Unreadable{Kind: exception.Malformed, Result: supplier.Malformed}
				m.Content.Status = supplier.Other
			},
		} {
			for _, state := range []exception.State{exception.Opened, exception.Assigned, exception.Proposed, exception.Failed} {
				tradeNo := kind + string(state)
				o := create(t, f, nil)
				m := underKey(f.Callback(o.OrderNo, tradeNo, 1999), tradeNo)
				first(m)
				outcome(t, f, m, kind)
				x := item(t, f, kind)
				path := []exception.State{state}
				if state == exception.Failed {
					path = []exception.State{exception.Approved, exception.Executing, exception.Failed}
				}
				for _, to := range path {
					if _, err := f.DB.NewRaw("UPDATE exceptions SET state = ? WHERE id = ?", to, x.ID).Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				outcome(t, f, underKey(f.Callback(o.OrderNo, tradeNo, 1999), tradeNo+" right"), payment.Paid)
				now := item(t, f, kind)
				if now.ID != x.ID || now.State != exception.Resolved || now.Outcome != exception.BookedPaid || now.Version <= x.Version ||
					now.HeldRef != "" || now.ResolvedAt == nil {
					t.Errorf("%s, %s: %+v", kind, state, now)
				}
				// A decision about it finds that it was changed.
				err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
					return exception.Decide(ctx, tx, f.DB, x.ID, x.Version, exception.Resolved, 7, string(exception.RefundedElsewhere), "R1")
				})
				if !errors.Is(err, act.ErrChanged) {
					t.Errorf("%s, %s: decided after all: %v", kind, state, err)
				}
			}
		}
		f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved'")
	})
}

// A message of an unknown type is one exception per subject of ours, and one per type otherwise.
func TestAnUnknownTypeIsAnExceptionOfItsSubject(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		unknown := func(orderNo, tradeNo, key string) *payment.Message {
			m := underKey(f.Callback(orderNo, tradeNo, 0), key)
			m.Content.Status, m.Content.RawStatus = supplier.Unknown, "NEW.TYPE"
			return m
		}
		a, b := create(t, f, nil), create(t, f, nil)
		outcome(t, f, f.Callback(b.OrderNo, "T2", 1999), payment.Paid)
		for i, m := range []*payment.Message{
			unknown(a.OrderNo, "", "k1"), unknown(a.OrderNo, "", "k2"), unknown("", "T2", "k3"),
			unknown("", "T9", "k4"), unknown("no-such", "T8", "k5"), unknown("", "", "k6"),
		} {
			if out := take(t, f, m); out.Name != exception.UnknownEvent {
				t.Errorf("message %d is %s", i, out.Name)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_event' AND order_no = ? AND subject = ? AND seen = 2", a.OrderNo, a.OrderNo)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_event' AND order_no = ? AND subject = 'T2'", b.OrderNo)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'NEW.TYPE' AND order_no = '' AND seen = 3")
		f.Want(t, 3, "SELECT count(*) FROM exceptions")
		// Beyond a thousand of one type they are only counted.
		if _, err := f.DB.NewRaw("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
			" SELECT s.id + n.n, 'unknown_event', 'open', s.id, 0, 0, '', 'filler ' || CAST(n.n AS TEXT), 0, '', '{\"type\":\"NEW.TYPE\"}', 1, 1, 1 FROM suppliers AS s,"+
			" (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n FROM n) AS n WHERE s.id = ?",
			f.Supplier.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcome(t, f, unknown(create(t, f, nil).OrderNo, "", "k7"), exception.UnknownEvent)
		f.Want(t, 1003, "SELECT count(*) FROM exceptions")
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'NEW.TYPE' AND seen = 4")
		// Those of another type are not among them.
		other := unknown(create(t, f, nil).OrderNo, "", "k8")
		other.Content.RawStatus = "OTHER.TYPE"
		outcome(t, f, other, exception.UnknownEvent)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = ? AND seen = 1", other.Content.OrderRef)
	})
}

// The end of one try, such as a cancelled intent, is not the end of the order.
func TestTheEndOfOneTryIsNotTheEndOfTheOrder(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		ended := f.Callback(o.OrderNo, "pi_1", 1999)
		ended.Content.Status, ended.Content.OneTry, ended.Content.EventKey = supplier.Closed, true, "pi_1:canceled"
		outcome(t, f, ended, payment.FailedTry)
		if got := reload(t, f, o); got.Status != order.Pending {
			t.Errorf("the order is %s", got.Status)
		}
		outcome(t, f, f.Callback(o.OrderNo, "pi_2", 1999), payment.Paid)
		// One that names no order is about no money.
		ended.Content.OrderRef, ended.Content.TradeNo, ended.Content.EventKey = "", "pi_3", "pi_3:canceled"
		outcome(t, f, ended, payment.Ignored)
		f.Want(t, 0, "SELECT count(*) FROM exceptions")
	})
}
