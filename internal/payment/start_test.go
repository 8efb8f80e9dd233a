package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"backstop/internal/base/invalid"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

var querySteps = payment.Steps{Query: []time.Duration{time.Minute, 2 * time.Minute}, Close: []time.Duration{0, 10 * time.Second}}

func withFakes() paymenttest.Options {
	return paymenttest.Options{Fakes: paymenttest.NewFakes("f1", "f2"), Steps: querySteps}
}

func at(code string) func(*payment.CreateRequest) {
	return func(r *payment.CreateRequest) { r.Supplier = code }
}

func started(state supplier.StartState, class supplier.Class) func(context.Context, supplier.Payment) (supplier.Started, error) {
	return func(_ context.Context, p supplier.Payment) (supplier.Started, error) {
		return supplier.Started{
			State: state, Kind: supplier.ValueClientSecret, Value: "secret-" + p.Reference,
			Exchange: supplier.Exchange{Class: class},
		}, nil
	}
}

func TestAPaymentIsStartedOnceAndItsValueIsKept(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, at("f1"))
		var got supplier.Payment
		f.Fakes["f1"].OnStart(func(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
			got = p
			f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'created' AND supplier_ref = ?", o.OrderNo)
			f.Want(t, 1, "SELECT count(*) FROM orders WHERE status = 'paying' AND id = ?", o.ID)
			return started(supplier.Accepted, supplier.ClassOK)(ctx, p)
		})
		for range 3 {
			p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Method: "qr", ClientIP: "203.0.113.9"})
			if err != nil || p.Status != payment.PaySubmitted || p.Reference != o.OrderNo || p.Supplier != "f1" ||
				p.Kind != supplier.ValueClientSecret || p.Value != "secret-"+o.OrderNo || p.Order.Status != order.Paying {
				t.Fatalf("%+v, %v", p, err)
			}
		}
		if n, _, _ := f.Fakes["f1"].Count(o.OrderNo); n != 1 {
			t.Errorf("started %d times", n)
		}
		if got.Amount != 1999 || got.Currency != "CNY" || got.ExpiresAt.UnixMicro() != o.ExpiresAt ||
			got.NotifyURL != "https://pay.example/callback/f1" || got.Method != "qr" {
			t.Errorf("requested with %+v", got)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'submitted' AND value LIKE 'sealed:%' AND supplier_id = ?",
			f.Entry(t, "f1").ID)
		f.Want(t, 1,
			"SELECT count(*) FROM supplier_calls WHERE op = 'pay' AND state = 'ended' AND class = 'ok' AND status = 'accepted' AND reference = ?", o.OrderNo)
		now := reload(t, f, o)
		if wait := *now.NextAt - f.DB.Now(); wait < 50_000_000 || wait > 66_000_000 {
			t.Errorf("queried in %d µs", wait)
		}
	})
}

// No answer is no failure: the order is paid by its callback, and the same call repeats the
// same start.
func TestAStartWithoutAnAnswerIsUnknownAndIsRepeated(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, at("f1"))
		f.Fakes["f1"].OnStart(started(supplier.StartUnknown, supplier.ClassTimeout))
		p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
		if err != nil || p.Status != payment.PayUnknown || p.Value != "" || p.Order.Status != order.Paying {
			t.Fatalf("%+v, %v", p, err)
		}
		field := (*invalid.FieldError)(nil)
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "none"}); !errors.As(err, &field) ||
			field.Field != "supplier" {
			t.Errorf("no such supplier: %v", err)
		}
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "f2"}); !errors.Is(err,
			payment.ErrAttemptOpen) {
			t.Errorf("another supplier: %v", err)
		}
		// A refusal of the repeat may be because the first one was taken.
		f.Fakes["f1"].OnStart(started(supplier.StartRefused, supplier.ClassRefused))
		if p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "f1"}); err != nil ||
			p.Status != payment.PayUnknown {
			t.Errorf("a refused repeat: %+v, %v", p, err)
		}
		f.Fakes["f1"].OnStart(nil)
		p, err = f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
		if err != nil || p.Status != payment.PaySubmitted || p.Value != "qr:"+o.OrderNo || p.Reference != o.OrderNo {
			t.Errorf("a repeat: %+v, %v", p, err)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE external_id = 'ext-' || supplier_ref")
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "f2"}); !errors.Is(err,
			payment.ErrAttemptOpen) {
			t.Errorf("another supplier: %v", err)
		}
	})
}

func TestARefusedStartFailsTheAttemptAndAnotherSupplierTakesOver(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, at("f1"))
		f.Fakes["f1"].OnStart(started(supplier.StartRefused, supplier.ClassRefused))
		p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
		if err != nil || p.Status != payment.PayFailed || p.Order.Status != order.Paying {
			t.Fatalf("%+v, %v", p, err)
		}
		p, err = f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "f2"})
		if err != nil || p.Status != payment.PaySubmitted || p.Supplier != "f2" || p.Reference != o.OrderNo+"_2" {
			t.Fatalf("failover: %+v, %v", p, err)
		}
		// The payment comes by the attempt's supplier.
		m := f.Callback(o.OrderNo+"_2", "T1", 1999)
		m.Supplier = f.Entry(t, "f2")
		if out := take(t, f, m); out.Name != payment.Paid {
			t.Errorf("failover is paid: %+v", out)
		}
		m = f.Callback(o.OrderNo, "T2", 1999)
		m.Supplier, m.Content.EventKey = f.Entry(t, "f2"), "other"
		if out := take(t, f, m); out.Name != exception.AccountMismatch {
			t.Errorf("a reference of another supplier's: %+v", out)
		}
		f.Want(t, 1, "SELECT count(*) FROM transfers")
	})
}

func TestASupplierThatIsDownTakesNoPayment(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		f.Fakes["f1"].OnStart(started(supplier.StartUnknown, supplier.ClassConnect))
		for range 5 {
			if _, err := f.Processor.Pay(t.Context(), f.M1, create(t, f, at("f1")).OrderNo, payment.PayRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		o := create(t, f, at("f1"))
		before := f.Count(t, "SELECT count(*) FROM payment_attempts") + f.Count(t, "SELECT count(*) FROM supplier_calls")
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); !errors.Is(err, suppliercall.ErrDown) {
			t.Error(err)
		}
		if got := reload(t, f, o); got.Status != order.Pending || got.Version != 1 {
			t.Errorf("order %+v", got)
		}
		f.Want(t, before, "SELECT (SELECT count(*) FROM payment_attempts) + (SELECT count(*) FROM supplier_calls)")
		if p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "f2"}); err != nil ||
			p.Reference != o.OrderNo || p.Status != payment.PaySubmitted {
			t.Errorf("the other one: %+v, %v", p, err)
		}
	})
}

func TestWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, at("f1"))
		field := (*invalid.FieldError)(nil)
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "nobody"}); !errors.As(err, &field) ||
			field.Field != "supplier" {
			t.Error(err)
		}
		f.Fakes["f1"].OnStart(func(context.Context, supplier.Payment) (supplier.Started, error) {
			return supplier.Started{}, &supplier.FieldError{Field: "order_no", Problem: "too long"}
		})
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); !errors.As(err, &field) ||
			field.Field != "order_no" {
			t.Error(err)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'failed'")
		if _, err := f.DB.NewRaw("UPDATE suppliers SET enabled = FALSE WHERE code = 'f1'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DB.NewRaw("UPDATE settings SET value = value + 1 WHERE name = 'config_version'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); !errors.As(err, &field) ||
			field.Field != "supplier" {
			t.Errorf("a disabled supplier: %v", err)
		}
		paid := create(t, f, nil)
		take(t, f, f.Callback(paid.OrderNo, "T9", 1999))
		if _, err := f.Processor.Pay(t.Context(), f.M1, paid.OrderNo, payment.PayRequest{}); !errors.Is(err, payment.ErrState) {
			t.Errorf("a paid order: %v", err)
		}
	})
}

// eachWith is each with fakes of its own on each engine.
func eachWith(t *testing.T, test func(t *testing.T, f *paymenttest.Fixture)) {
	eachNew(t, withFakes, test)
}

func TestTheStepsOfAnOrder(t *testing.T) {
	t.Parallel()
	const minute = int64(time.Minute / time.Microsecond)
	s := payment.Steps{
		Query: []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute}, Close: []time.Duration{0, 10 * time.Second, time.Minute},
	}
	for id := int64(1); id < 2000; id++ {
		o := &order.Order{ID: id, Status: order.Paying, ExpiresAt: 1000 * minute}
		var factor float64
		for n, want := range []int64{minute, 2 * minute, 5 * minute} {
			o.QueryTries = int64(n)
			got, stuck := s.Next(o, 0)
			if stuck || float64(got) < 0.9*float64(want)-1 || float64(got) > 1.1*float64(want) {
				t.Fatalf("order %d, try %d: in %d µs", id, n, got)
			}
			if f := float64(got) / float64(want); factor != 0 && (f-factor > 1e-6 || factor-f > 1e-6) {
				t.Fatalf("order %d has two spreads: %f, %f", id, f, factor)
			} else {
				factor = f
			}
		}
		o.QueryTries = 3
		if got, stuck := s.Next(o, 0); !stuck || got != 1000*minute {
			t.Fatalf("after the last step: %d, %v", got, stuck)
		}
		o.QueryTries, o.ExpiresAt = 1, minute/2
		if got, _ := s.Next(o, 0); got != minute/2 {
			t.Fatalf("later than its timeout: %d", got)
		}
		o.Status, o.QueryTries, o.ExpiresAt = order.Closing, 9, 0
		if got, stuck := s.Next(o, 24*60*minute-1); stuck || got < 24*60*minute+minute*9/10-2 || got > 24*60*minute+minute*11/10 {
			t.Fatalf("closing repeats its last step: %d, %v", got, stuck)
		}
		if got, stuck := s.Next(o, 24*60*minute); !stuck || got != 48*60*minute {
			t.Fatalf("closing for a day: %d, %v", got, stuck)
		}
	}
}

// Two nodes have found an order at its timeout: the second one must not close what the first
// one has begun to close, unasked.
func TestWhatIsClosingIsNotClosedUnasked(t *testing.T) {
	t.Parallel()
	eachWith(t, func(t *testing.T, f *paymenttest.Fixture) {
		f.Processor.QueryBy(func([]payment.Moment) {})
		o := create(t, f, at("f1"))
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DB.NewRaw("UPDATE orders SET expires_at = ?0, next_at = ?0 WHERE id = ?1", f.DB.Now()-1,
			o.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{1, 0} {
			if n, err := f.Processor.ExpireFound(t.Context(), o.ID); n != want || err != nil {
				t.Errorf("node %d moved %d, %v", i, n, err)
			}
			if got := reload(t, f, o); got.Status != order.Closing {
				t.Errorf("after node %d the order is %s", i, got.Status)
			}
		}
	})
}

// From its timeout on, an order is to be closed, and no longer queried on the earlier schedule.
func TestNoStepIsBehindTheTimeout(t *testing.T) {
	t.Parallel()
	o := &order.Order{ID: 7, Status: order.Paying, ExpiresAt: 1000}
	for tries := range int64(5) {
		o.QueryTries = tries
		for _, c := range []struct{ now, want int64 }{{0, 1000}, {999, 1000}, {1000, 1000}, {5000, 5000}} {
			if got, _ := querySteps.Next(o, c.now); got != c.want {
				t.Errorf("try %d at %d: %d, want %d", tries, c.now, got, c.want)
			}
		}
	}
}
