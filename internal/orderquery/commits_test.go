package orderquery

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/metric"
	"backstop/internal/base/work"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// transactions returns how many transactions of group commit have run under a name.
func transactions(t testing.TB, name string) uint64 {
	t.Helper()
	all, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "backstop_commit_batch_items" && m.GetLabel()[0].GetValue() == name {
				return m.GetHistogram().GetSampleCount()
			}
		}
	}
	return 0
}

// Queries take few commits, which callbacks need more: their rows are written with their claims,
// and neither claims nor results are committed one by one. Each row is still committed before
// its query, with eight in flight all the time.
func TestQueriesShareTheirCommits(t *testing.T) {
	// One engine after the other: the counters are the process's.
	t.Run("sqlite", func(t *testing.T) { sharedCommits(fixtureOf(t, dbtest.SQLite(t), paymenttest.Options{})) })
	t.Run("postgres", func(t *testing.T) { sharedCommits(fixtureOf(t, dbtest.Postgres(t), paymenttest.Options{})) })
}

func sharedCommits(f *fixture) {
	t := f.t
	const n, answer = 160, 30 * time.Millisecond
	var unwritten, inFlight, most atomic.Int64
	f.Fakes["f1"].OnQuery(func(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
		now := inFlight.Add(1)
		defer inFlight.Add(-1)
		most.Store(max(most.Load(), now))
		var rows int64
		err := f.DB.NewRaw("SELECT count(*) FROM supplier_calls WHERE op = 'query' AND state = 'begun' AND reference = ?",
			r.Reference).Scan(ctx, &rows)
		if err != nil || rows != 1 {
			unwritten.Add(1)
		}
		time.Sleep(answer) // the supplier takes its time
		return paymenttest.FakeAnswer(r, supplier.AnswerPaying), nil
	})
	f.Processor.QueryBy(func([]payment.Moment) {}) // wait until all have arrived
	all := make([]*order.Order, n)
	for i := range all {
		all[i] = f.order("f1", order.Paying)
	}
	f.Processor.QueryBy(f.a.Offer)
	f.due(all...)
	begun, ended := transactions(t, "call"), transactions(t, "advance")
	if _, err := f.Processor.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Eventually(t, n, "SELECT count(*) FROM supplier_calls WHERE op = 'query' AND state = 'ended' AND status = 'paying'")
	f.Want(t, n, "SELECT sum(query_tries) FROM orders")
	if k := transactions(t, "call") - begun; k != 0 {
		t.Errorf("%d transactions wrote rows of queries alone", k)
	}
	if k := transactions(t, "advance") - ended; k > n/2 {
		t.Errorf("%d results took %d transactions", n, k)
	}
	if unwritten.Load() != 0 {
		t.Errorf("%d queries were made before their rows were committed", unwritten.Load())
	}
	if most.Load() != 8 {
		t.Errorf("%d queries were in flight at most", most.Load())
	}
}

// A query that was recorded and not made says so, and its order's try is not counted.
func TestAQueryThatIsNotMadeIsRecordedAsSuch(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Processor.QueryBy(func([]payment.Moment) {})
		claim := func(o *order.Order) *job {
			f.due(o)
			got, err := f.a.Claim(t.Context(), []work.Slot{{ID: o.ID, Lane: o.SupplierID}},
				work.Lease{Owner: f.DB.Boot(), Until: f.DB.Now() + lease.Microseconds()})
			if err != nil || len(got) != 1 {
				t.Fatalf("%d claimed, %v", len(got), err)
			}
			f.Want(t, 1, "SELECT count(*) FROM supplier_calls WHERE order_id = ? AND op = 'query' AND state = 'begun'", o.ID)
			return got[0].Row
		}
		released, changed, down := f.order("f1", order.Paying), f.order("f1", order.Paying), f.order("f1", order.Paying)
		if err := f.a.Release(t.Context(), claim(released), f.DB.Now()); err != nil { // the process ends before its turn
			t.Fatal(err)
		}
		j := claim(changed)
		for _, at := range j.attempts { // as if its payment had failed meanwhile
			at.Status = payment.AttemptFailed
		}
		if ran := f.a.run(t.Context(), work.Slot{ID: changed.ID}, j); len(ran.Results) != 1 {
			t.Errorf("%+v", ran)
		}
		j = claim(down)
		for range 5 {
			d, err := f.Calls.Do(t.Context(), suppliercall.Call{To: f.Entry(t, "f1"), Op: suppliercall.Close, Reference: "R"},
				func(context.Context) (suppliercall.Said, error) {
					return suppliercall.Said{Status: "unknown", Exchange: supplier.Exchange{Class: supplier.ClassTimeout}}, nil
				})
			if err == nil {
				err = f.Calls.Keep(t.Context(), d)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ran := f.a.run(t.Context(), work.Slot{ID: down.ID}, j)
		if len(ran.Results) != 0 || ran.ReleaseAt == 0 {
			t.Errorf("%+v", ran)
		}
		f.Want(t, 3, "SELECT count(*) FROM supplier_calls WHERE op = 'query' AND state = 'ended' AND status = ?", suppliercall.NotMade)
		f.Want(t, 0, "SELECT query_tries FROM orders WHERE id = ?", released.ID)
		if n := f.Fakes["f1"].Queried(); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
}
