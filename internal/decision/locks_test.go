package decision_test

import (
	"context"
	"slices"
	"testing"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/settings"
)

// untilBlocked waits until a transaction waits for a lock that another one holds.
func (k *office) untilBlocked() {
	k.t.Helper()
	waittest.Until(k.t, "a transaction waits", func() bool {
		return k.Count(k.t,
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0") > 0
	})
}

// In a one-person installation late money is accepted while the supplier reports it again: the
// callback has locked the order and locks the exception next. Only PostgreSQL has two concurrent
// writers.
func TestADecisionAtOnceLocksTheOrderFirst(t *testing.T) {
	t.Parallel()
	for _, naive := range []bool{false, true} {
		d := dbtest.Postgres(t)
		k := open(t, d)
		k.AddSKU(t, "tea", 10)
		k.rules = settings.Rules{Above: map[string]settings.Above{"CNY": {Amount: 100_000}}}
		o, x := k.late()
		actions := slices.Clone(k.actions)
		for i := range actions {
			second := *actions[i].Second
			second.Query = nil // its answer is confirmed earlier, under a lock of its own
			if naive {
				second.Lock = nil
			}
			actions[i].Second = &second
		}
		decides := k.deskOf(actions)
		ended := make(chan error, 1)
		callback := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			if _, err := order.ByIDs(ctx, tx, d, []int64{o.ID}); err != nil {
				return err
			}
			go func() {
				p := wish(decision.AcceptLate, x.ID, `{}`)
				p.By = k.person(access.Finance)
				a, err := decides.Propose(context.Background(), p)
				if err == nil && (a.State != approval.Done || !a.SinglePerson) {
					t.Errorf("%+v", a)
				}
				ended <- err
			}()
			k.untilBlocked()
			again := &exception.Item{
				Kind: x.Kind, SupplierID: x.SupplierID, OrderID: x.OrderID, OrderNo: x.OrderNo, MerchantID: x.MerchantID,
				Subject: x.Subject, Amount: x.Amount, Currency: x.Currency,
			}
			w := tx.Writes()
			exception.Open(tx, w, d, []*exception.Item{again})
			return w.Exec(ctx)
		})
		decided := <-ended
		if naive {
			if !db.IsConflict(callback) && !db.IsConflict(decided) {
				t.Errorf("without the lock they do not wait for each other: %v, %v", callback, decided)
			}
			continue
		}
		if callback != nil || decided != nil {
			t.Errorf("the callback: %v; the decision: %v", callback, decided)
		}
		if got := k.reload(o); got.Status != order.Paid {
			t.Errorf("the order is %s", got.Status)
		}
		k.books()
	}
}
