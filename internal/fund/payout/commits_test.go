package payout

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/metric"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/supplier"
)

// transactions returns how many transactions of group commit have run, by their names.
func transactions(t testing.TB) map[string]uint64 {
	t.Helper()
	families, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "backstop_commit_batch_items" {
				all[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return all
}

// A payout takes three transactions, which it shares with others that wait: for its request,
// before its call, with the call's row, and for its answer.
func TestAPayoutTakesThreeTransactions(t *testing.T) {
	threeTransactions := func(k *till) {
		k.fund("m1", 2*sum)
		before := transactions(k.t)
		p := k.mustCreate(sum)
		k.run(p)
		k.is("answered", p, "P8", Succeeded, 1, "payout.succeeded")
		after := transactions(k.t)
		for name, want := range map[string]uint64{"payout_requests": 1, "payouts": 1, "payout_answers": 1, "call": 0, "answer": 0} {
			if got := after[name] - before[name]; got != want {
				k.t.Errorf("%d transactions of %s, want %d", got, name, want)
			}
		}
	}
	// One after the other: the counters are the process's.
	t.Run("sqlite", func(t *testing.T) { threeTransactions(newTill(t, dbtest.SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { threeTransactions(newTill(t, dbtest.Postgres(t))) })
}

// together runs one transaction of group commit.
func together[In, Out any](k *till, run func(context.Context, db.Tx, []In) ([]Out, error), all []In) (outs []Out) {
	k.t.Helper()
	err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		outs, err = run(ctx, tx, all)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return outs
}

// In one transaction each request is decided with what those before it have left, and each answer
// for its own payout: what becomes of one has no effect on the others.
func TestPayoutsInOneTransactionAreIndependent(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", 3*sum)
		k.limit.Auto = sum
		at := k.Entry(t, "f1")
		create := func(of *merchant.Merchant, amount int64) *creation {
			return &creation{of: of, req: k.request(amount), at: at, exponent: 2}
		}
		forbidden := create(k.M1, 1)
		forbidden.req.AccountCode = "none"
		outs := together(k, k.m.createAll, []*creation{
			create(k.M1, sum), create(k.M1, 2*sum), forbidden, create(k.M1, sum), create(k.M2, 1), create(k.M1, sum), create(k.M1, 1),
		})
		if out := outs[1]; out.err != nil || !out.created || out.p.ByRule || out.p.Status != Created {
			t.Errorf("what waits for people: %+v", out)
		}
		if !isField(outs[2].err, "account") {
			t.Errorf("to an account that is not allowed: %+v", outs[2])
		}
		for _, i := range []int{4, 6} {
			if !errors.Is(outs[i].err, ledger.ErrInsufficient) || outs[i].p != nil {
				t.Errorf("request %d, of a merchant that has nothing left: %+v", i, outs[i])
			}
		}
		for _, i := range []int{0, 3, 5} {
			if outs[i].err != nil || !outs[i].created {
				t.Fatalf("request %d: %+v", i, outs[i])
			}
			k.is("requested", outs[i].p, "P5", Crediting, 0)
		}
		k.balances("requested", 0, 3*sum, -3*sum, 0)

		sent := together(k, k.m.sendAll, []*sending{
			{outs[0].p.ID, at},
			{outs[1].p.ID, at},
			{1, at},
			{outs[3].p.ID, at},
			{outs[5].p.ID, at},
		})
		if !errors.Is(sent[1].err, db.ErrStale) || sent[1].call != nil || !errors.Is(sent[2].err, ErrNotFound) {
			t.Errorf("what must not be sent: %+v, %+v", sent[1], sent[2])
		}
		var answers []*answered
		for i, state := range map[int]supplier.PayoutState{
			0: supplier.PayoutSucceeded, 3: supplier.PayoutFailed,
			4: supplier.PayoutUnknown,
		} {
			if sent[i].err != nil {
				t.Fatalf("call %d: %v", i, sent[i].err)
			}
			k.is("sent", sent[i].p, "P6", Crediting, 0)
			k.Want(t, 1, "SELECT count(*) FROM supplier_calls WHERE id = ? AND state = 'begun' AND reference = ?", sent[i].call.ID,
				sent[i].p.PayoutNo)
			sent[i].call.State = "ended"
			answers = append(answers, &answered{
				id: sent[i].p.ID, heard: supplierAnswer{PayoutAnswer: supplier.PayoutAnswer{State: state}},
				done: sent[i].call,
			})
		}
		for _, out := range together(k, k.m.settleAll, answers) {
			out.committed()
		}
		k.is("succeeded", sent[0].p, "P8", Succeeded, 0, "payout.succeeded")
		k.is("refused", sent[3].p, "P6", Crediting, 0)
		k.is("unknown", sent[4].p, "P7", Unknown, 0)
		k.balances("answered", 0, 2*sum, -2*sum, 0)
		k.Want(t, 3, "SELECT count(*) FROM supplier_calls WHERE op = 'payout' AND state = 'ended'")
	})
}
