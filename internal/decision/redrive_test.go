package decision_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/settings"
)

// redriver runs batches over exceptions and counts the nudges.
type redriver struct {
	*office
	batches *batch.Batches
	mu      sync.Mutex
	nudged  map[int64]int // by compensation or delivery
}

func newRedriver(k *office) *redriver {
	r := &redriver{office: k, nudged: map[int64]int{}}
	count := func(all []queue.Nudge) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, n := range all {
			r.nudged[n.Delivery]++
		}
	}
	policy, err := access.NewPolicy()
	if err != nil {
		k.t.Fatal(err)
	}
	rules := settings.Rules{Above: map[string]settings.Above{}}
	for _, currency := range []string{"CNY", ""} {
		rules.Above[currency] = settings.Above{BatchAmount: 1 << 40, BatchRows: batch.MaxRows}
	}
	log := audit.New(k.DB, k.keys)
	r.batches = batch.New(batch.Options{
		DB: k.DB, Audit: log, Rules: func() settings.Rules { return rules }, Rate: batch.MaxRate, Log: slog.New(slog.DiscardHandler),
	})
	redrive := decision.Redrive(
		compensation.Acts{DB: k.DB, Schedule: compensation.Schedule{time.Hour}, Nudge: count}.Running(),
		notify.Acts{
			DB: k.DB, Directory: func() *merchant.Directory { return k.Settings.Merchants() },
			Breakers: breaker.NewCache(k.DB, nil), Nudge: count,
		}.Resending(),
	)
	r.batches.Use(act.New(k.DB, log, policy, append(r.batches.Acts(), redrive)...), nil)
	return r
}

// dead creates a compensation that ran out of tries, with its exception, as the runner does.
func (r *redriver) dead(kind string) (id int64) {
	r.t.Helper()
	ctx := context.Background()
	x := &compensation.Item{
		Kind: kind, Cause: compensation.SupplierTimeout, SubjectKind: compensation.OfOrder, SubjectID: r.DB.NewID(), OrderNo: "O1",
		MerchantID: r.M1.ID,
		SupplierID: r.Supplier.ID, Amount: 100, Currency: "CNY", MadeBy: "test",
	}
	dies := compensation.Kind{
		Name: kind, Check: func(json.RawMessage) error { return nil },
		Run: func(context.Context, compensation.Item) compensation.Result {
			return compensation.DeadLetter(compensation.SupplierTimeout, "no answer")
		},
	}
	runner := compensation.NewRunner(compensation.Options{
		DB: r.DB, Kinds: []compensation.Kind{dies}, Schedule: compensation.Schedule{time.Millisecond}, Concurrency: 1, PerLane: 1,
		Time: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	defer runner.Close(ctx)
	err := r.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		compensation.Schedule{time.Millisecond}.Open(w, r.DB, x)
		return w.Exec(ctx)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	waittest.Until(r.t, "it is dead", func() bool {
		runner.Pull([]int64{r.Supplier.ID})
		return r.Count(r.t, "SELECT count(*) FROM compensations WHERE id = ? AND state = 'dead'", x.ID) == 1
	})
	return x.ID
}

// exhausted creates a payment whose notification ran out of attempts, with its exception.
func (r *redriver) exhausted() (delivery int64) {
	r.t.Helper()
	o := r.order(order.Paid, "sp-main")
	d := new(notify.Delivery)
	if err := r.DB.NewSelect().Model(d).Where("d.subject_id = ?", o.ID).Scan(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	r.exec("UPDATE deliveries SET status = 'sending' WHERE id = ?", d.ID)
	r.exec("UPDATE deliveries SET status = 'exhausted', next_at = NULL, attempts = 4, finished_at = ? WHERE id = ?", r.DB.Now(), d.ID)
	r.open(&exception.Item{
		Kind: exception.NotifyExhausted, MerchantID: r.M1.ID, OrderID: o.ID, OrderNo: o.OrderNo, Subject: d.PublicID(),
		Amount: o.Amount, Currency: o.Currency,
	})
	return d.ID
}

func (r *redriver) open(x *exception.Item) {
	r.t.Helper()
	err := r.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		exception.Open(tx, w, r.DB, []*exception.Item{x})
		return w.Exec(ctx)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// plan plans to run all exceptions again.
func (r *redriver) plan() *batch.Batch {
	r.t.Helper()
	var ids []int64
	err := r.DB.NewRaw("SELECT id FROM exceptions ORDER BY id").Scan(context.Background(), &ids)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := r.batches.Plan(context.Background(), batch.Proposal{
		Action: "redrive", Object: decision.OfException, By: r.person(access.Ops),
		IDs: ids,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// run starts a batch and waits for its end.
func (r *redriver) run(b *batch.Batch) *batch.Batch {
	r.t.Helper()
	amounts := map[string]string{}
	for _, s := range r.batches.Typed(b) {
		amounts[s.Currency] = money.Format(s.Minor, s.Currency)
	}
	params, _ := json.Marshal(batch.StartParams{Amounts: amounts})
	if _, err := r.batches.Change(context.Background(), act.Call{
		Kind: batch.StartAct, By: r.person(access.Ops), Ref: act.Ref{Row: b.ID}, Params: params, Reason: "they answer again",
	}); err != nil {
		r.t.Fatal(err)
	}
	runner := batch.NewRunner(r.batches)
	defer runner.Close(context.Background())
	waittest.Until(r.t, "the batch ends", func() bool {
		runner.Offer(b.ID)
		var err error
		if b, err = batch.Find(context.Background(), r.DB, b.ID); err != nil {
			r.t.Fatal(err)
		}
		return b.State != batch.Running
	})
	return b
}

// Compensations and notifications of exceptions run again, each once, and the exceptions end with
// them; exceptions that need a decision stay as they are.
func TestExceptionsAreRunAgain(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		r := newRedriver(k)
		var again []int64
		for range 3 {
			again = append(again, r.dead(compensation.Resend), r.dead(compensation.Rerun), r.exhausted())
		}
		busy := r.dead(compensation.Rerun)
		r.exec("UPDATE compensations SET state = 'running' WHERE id = ?", busy)
		over := r.dead(compensation.Resend)
		r.exec("UPDATE compensations SET state = 'cancelled' WHERE id = ?", over)
		gone := r.exhausted()
		r.exec("UPDATE deliveries SET status = 'retry_wait', next_at = ? WHERE id = ?", r.DB.Now()+time.Hour.Microseconds(),
			gone) // continues on its own
		r.open(&exception.Item{
			Kind: exception.LatePayment, SupplierID: r.Supplier.ID, Subject: "T1", OrderNo: "O9", Amount: 700,
			Currency: "CNY",
		})
		b := r.plan()
		want := batch.Tally{
			string(act.Will):      {{Currency: "CNY", Orders: 6, Minor: 3*100 + 3*1999}},
			string(act.WillQuery): {{Currency: "CNY", Orders: 3, Minor: 300}},
			string(act.Blocked):   {{Currency: "CNY", Orders: 2, Minor: 100 + 700}},
			string(act.Final):     {{Currency: "CNY", Orders: 2, Minor: 100 + 1999}},
		}
		if !reflect.DeepEqual(b.Planned, want) || b.ToDo != 9 {
			t.Fatalf("planned %v, want %v", b.Planned, want)
		}
		b = r.run(b)
		if b.State != batch.Done ||
			!reflect.DeepEqual(b.Result.Ran(), []report.Sum{{Currency: "CNY", Orders: 9, Minor: 3*100 + 3*1999 + 300}}) {
			t.Errorf("%s with %v", b.State, b.Result)
		}
		for _, id := range again {
			if r.nudged[id] != 1 {
				t.Errorf("%d was nudged %d times", id, r.nudged[id])
			}
		}
		if len(r.nudged) != len(again) {
			t.Errorf("%d were nudged", len(r.nudged))
		}
		r.Want(t, 6, "SELECT count(*) FROM compensations WHERE state = 'waiting' AND next_at <= ?", r.DB.Now())
		r.Want(t, 4, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait'")
		r.Want(t, 9, "SELECT count(*) FROM exceptions WHERE state = 'resolved'")
		r.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state = 'resolved' AND kind = 'late_payment'")
		r.Want(t, 4, "SELECT count(*) FROM exceptions WHERE state = 'open'")
		r.Want(t, 9, "SELECT count(*) FROM batch_rows WHERE batch_id = ? AND state = 'done'", b.ID)

		// In a second plan all of these have ended; one that dies again becomes an exception again.
		if b = r.plan(); b.ToDo != 0 || b.Planned.Count(string(act.Final)) != 11 {
			t.Errorf("planned again: %v", b.Planned)
		}
	})
}

// If the cause of an exception changes between the plan and the step, nothing is done.
func TestWhatIsBehindAnExceptionIsJudgedAnew(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		r := newRedriver(k)
		for range 200 {
			r.open(&exception.Item{
				Kind: exception.CompensationDead, Subject: strconv.FormatInt(r.DB.NewID(), 10), Amount: 100,
				Currency: "CNY",
			})
		}
		r.exec("INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, payload, state, attempts, max_attempts, made_by, opened_at)" +
			" SELECT CAST(subject AS BIGINT), 'resend', 'merchant_unreachable', 'delivery', id, 'O1', 1, 0, 1, 100, 'CNY', '{}', 'dead', 3, 3, 'test', 0 FROM exceptions")
		b := r.plan()
		if b.ToDo != 200 {
			t.Fatalf("planned %v", b.Planned)
		}
		var runs int64
		if err := r.DB.NewRaw("SELECT min(id) FROM compensations").Scan(t.Context(), &runs); err != nil {
			t.Fatal(err)
		}
		r.exec("UPDATE compensations SET state = 'running', next_at = ? WHERE id = ?", r.DB.Now(), runs)
		if b = r.run(b); b.State != batch.Done || b.Result.Count(string(batch.RowDone)) != 199 || b.Result.Count(string(act.Blocked)) != 1 {
			t.Errorf("%s with %v", b.State, b.Result)
		}
		r.Want(t, 1, fmt.Sprintf("SELECT count(*) FROM exceptions WHERE state = 'open' AND subject = '%d'", runs))
		if r.nudged[runs] != 0 {
			t.Error("what ran was nudged")
		}
	})
}

// Whoever may run compensations again in bulk may also resend notifications in bulk, because a
// batch of exceptions does both.
func TestWhoRedrivesMaySendMany(t *testing.T) {
	t.Parallel()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range access.AllRoles {
		if policy.Allows(access.RolesOf(role), access.RedriveCompensations) && !policy.Allows(access.RolesOf(role), access.ResendMany) {
			t.Errorf("%s may redrive, and not send many notifications", role)
		}
	}
}
