package orderquery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// The two usual mistakes, made on purpose: each must be detected by the check that the worker
// passes, or the check proves nothing.

// querier queries once about a due order.
type querier func(f *fixture, o *order.Order) error

func properly(f *fixture, o *order.Order) error {
	if !f.push(o, nil) {
		return errors.New("the order was not asked about")
	}
	return nil
}

// failOnTimeout treats a missing answer as a failure.
func failOnTimeout(f *fixture, o *order.Order) error {
	ctx := context.Background()
	s := f.Entry(f.t, "f1")
	answer, err := s.Can().Query(ctx, supplier.Ref{Reference: o.OrderNo, Amount: o.Amount, Currency: o.Currency})
	if err != nil {
		return err
	}
	if answer.State == supplier.AnswerUnknown {
		answer.State = supplier.AnswerFailed
	}
	return confirmed(ctx, f, o, answer)
}

// callInTransaction locks the order, queries, and writes the answer, all in one transaction.
func callInTransaction(f *fixture, o *order.Order) error {
	ctx := context.Background()
	s := f.Entry(f.t, "f1")
	return f.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewRaw("UPDATE orders SET queried_at = ? WHERE id = ?", f.DB.Now(), o.ID).Exec(ctx); err != nil {
			return err
		}
		_, err := s.Can().Query(ctx, supplier.Ref{Reference: o.OrderNo, Amount: o.Amount, Currency: o.Currency})
		return err
	})
}

func confirmed(ctx context.Context, f *fixture, o *order.Order, answer supplier.Answer) error {
	m := message(f.Entry(f.t, "f1"), supplier.Ref{Reference: o.OrderNo}, answer, f.DB.NewID())
	if m == nil {
		return nil
	}
	return f.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		_, err := f.Processor.Confirm(ctx, tx, []*payment.Message{m})
		return err
	})
}

// paidAfterATimeout checks that "unknown" is not treated as failed: the supplier does not
// answer, and the payment succeeds afterwards.
func paidAfterATimeout(f *fixture, query querier) error {
	f.Fakes["f1"].Says(supplier.AnswerUnknown)
	o := f.order("f1", order.Paying)
	f.due(o)
	if err := query(f, o); err != nil {
		return err
	}
	f.take(f.callback(o, "f1"))
	if got := f.reload(o); got.Status != order.Paid {
		return fmt.Errorf("the money has arrived, and the order is %s", got.Status)
	}
	return nil
}

// freeDuringTheCall checks that the call is made outside the transaction: during the call its
// row is visible to every other process, and a callback for the same order is processed.
func freeDuringTheCall(f *fixture, query querier) error {
	o := f.order("f1", order.Paying)
	f.due(o)
	var seen int64
	var blocked error
	taken := make(chan error, 1)
	f.Fakes["f1"].OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
		// Read as another process would: SQLite's only writer may be busy.
		err := f.DB.Read.NewRaw("SELECT count(*) FROM supplier_calls WHERE order_id = ? AND op = 'query' AND state = 'begun'",
			o.ID).Scan(context.Background(), &seen)
		if err != nil {
			return supplier.Answer{}, err
		}
		go func() {
			_, err := f.Processor.Submit(context.Background(), f.callback(o, "f1"))
			taken <- err
		}()
		select {
		case blocked = <-taken:
			taken <- blocked
		case <-time.After(2 * time.Second):
			blocked = errors.New("a callback waits for the supplier's answer")
		}
		return paymenttest.FakeAnswer(r, supplier.AnswerPaying), nil
	})
	err := query(f, o)
	if late := <-taken; err == nil {
		err = late
	}
	switch {
	case err != nil:
		return err
	case blocked != nil:
		return blocked
	case seen != 1:
		return fmt.Errorf("%d rows of the call while it ran: a crash would leave no trace of it", seen)
	}
	if got := f.reload(o); got.Status != order.Paid {
		return fmt.Errorf("the order is %s", got.Status)
	}
	return nil
}

func TestTheUsualMistakesAreSeen(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		for name, c := range map[string]struct {
			check func(*fixture, querier) error
			naive querier
		}{
			"failure on timeout":          {paidAfterATimeout, failOnTimeout},
			"call inside the transaction": {freeDuringTheCall, callInTransaction},
		} {
			if err := c.check(f, properly); err != nil {
				t.Errorf("%s: the worker: %v", name, err)
			}
			if err := c.check(f, c.naive); err == nil {
				t.Errorf("%s: the check sees nothing", name)
			} else {
				t.Logf("%s: seen: %v", name, err)
			}
		}
	})
}
