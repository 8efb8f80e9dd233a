package orderquery

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/money"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/internal/compensation"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// batches are those of orders; down = the breakers of suppliers stop them.
func (f *fixture) batches(down bool) *batch.Batches {
	f.t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		f.t.Fatal(err)
	}
	rules := settings.Rules{Above: map[string]settings.Above{}}
	for _, currency := range []string{"CNY", ""} {
		rules.Above[currency] = settings.Above{BatchAmount: 1 << 40, BatchRows: batch.MaxRows}
	}
	log := audit.New(f.DB, sealtest.Ring(f.t, 1))
	o := batch.Options{
		DB: f.DB, Audit: log, Rules: func() settings.Rules { return rules }, Rate: batch.MaxRate,
		Log: slog.New(slog.DiscardHandler),
	}
	if down {
		o.Down = f.Calls.Down
	}
	b := batch.New(o)
	acts := append(f.a.Acts(compensation.Schedule{time.Minute}), f.Processor.Closing())
	b.Use(act.New(f.DB, log, policy, append(acts, b.Acts()...)...), nil)
	return b
}

// run plans a batch over orders, and runs it to its end.
func (f *fixture) run(b *batch.Batches, action string, ids []int64) *batch.Batch {
	f.t.Helper()
	ctx, lead := context.Background(), act.Actor{Name: "operator:zhou", ID: 3, Roles: access.Lead}
	x, err := b.Plan(ctx, batch.Proposal{Action: action, Object: "order", By: lead, IDs: ids})
	if err != nil {
		f.t.Fatal(err)
	}
	typed := map[string]string{}
	for _, s := range b.Typed(x) {
		typed[s.Currency] = money.Format(s.Minor, s.Currency)
	}
	f.start(b, x, lead, typed)
	return f.over(b, x.ID)
}

func (f *fixture) start(b *batch.Batches, x *batch.Batch, by act.Actor, amounts map[string]string) {
	f.t.Helper()
	params, _ := json.Marshal(batch.StartParams{Amounts: amounts})
	_, err := b.Change(context.Background(), act.Call{
		Kind: batch.StartAct, By: by, Ref: act.Ref{Row: x.ID}, Params: params, Reason: "as agreed by phone",
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// over works a batch off.
func (f *fixture) over(b *batch.Batches, id int64) *batch.Batch {
	f.t.Helper()
	ctx := context.Background()
	runner := batch.NewRunner(b)
	defer runner.Close(ctx)
	var x *batch.Batch
	waittest.Until(f.t, "the batch ends", func() bool {
		runner.Offer(id)
		var err error
		if x, err = batch.Find(ctx, f.DB, id); err != nil {
			f.t.Fatal(err)
		}
		return x.State != batch.Running
	})
	return x
}

func (f *fixture) paying(code string, n int) (ids []int64) {
	f.t.Helper()
	for range n {
		ids = append(ids, f.order(code, order.Paying).ID)
	}
	return ids
}

// A supplier that answers nothing ends a batch: where its breaker is known, by that; else after
// 20 of the last 100 rows. What was not queried stays as it is.
func TestABatchOfQueriesStopsWhereNobodyAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.Fakes["f1"].Says(supplier.AnswerUnknown) // with the class of a timeout
		ids := f.paying("f1", 60)
		queried := f.Fakes["f1"].Queried()
		x := f.run(f.batches(false), "query", ids)
		if n := x.Result.Count(string(batch.RowFailed)); x.State != batch.Stopped ||
			x.StoppedBecause != string(compensation.SupplierTimeout) || n < 20 {
			t.Errorf("%s because of %q after %d failures", x.State, x.StoppedBecause, n)
		}
		f.Want(t, x.Result.Count(string(batch.RowFailed)),
			"SELECT count(*) FROM batch_rows WHERE state = 'failed' AND cause = 'supplier_timeout' AND outcome = 'will_query'")
		// The breaker opens with the fifth failure: four orders were queried before, and at most 16,
		// which a batch queries at a time, are being queried then.
		if n := f.Fakes["f1"].Queried() - queried; n < 5 || n > 4+16 {
			t.Errorf("%d were queried", n)
		}
		f.Want(t, 60, "SELECT count(*) FROM orders WHERE status = 'paying'")

		f.Fakes["f2"].Says(supplier.AnswerUnknown)
		ids = f.paying("f2", 60)
		x = f.run(f.batches(true), "query", ids)
		if n := x.Ended(); x.State != batch.Stopped || x.StoppedBecause != batch.ByBreaker &&
			x.StoppedBecause != string(compensation.SupplierTimeout) || n == 60 {
			t.Errorf("%s because of %q after %d rows", x.State, x.StoppedBecause, n)
		}
		f.Want(t, 120, "SELECT count(*) FROM orders WHERE status = 'paying'")
	})
}

// What is paid while a batch runs is not closed by it, and no money that was shown; where that
// is more than one part in a hundred, the rest is left alone.
func TestABatchThatClosesStopsWhereOrdersArePaidMeanwhile(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		b, lead := f.batches(false), act.Actor{Name: "operator:zhou", ID: 3, Roles: access.Lead}
		var ids []int64
		var orders []*order.Order
		for range 30 {
			o := f.order("sp-main", order.Pending)
			ids, orders = append(ids, o.ID), append(orders, o)
		}
		x, err := b.Plan(t.Context(), batch.Proposal{Action: "close", Object: "order", By: lead, IDs: ids})
		if err != nil || x.Planned.Count(string(act.Will)) != 30 {
			t.Fatalf("%+v, %v", x, err)
		}
		f.start(b, x, lead, map[string]string{"CNY": "599.70"})
		f.take(f.callback(orders[7], "sp-main")) // 3 % of it
		if x = f.over(b, x.ID); x.State != batch.Stopped || x.StoppedBecause != batch.ByDrift || x.Ended() != 0 {
			t.Errorf("%s because of %q after %d rows", x.State, x.StoppedBecause, x.Ended())
		}
		f.Want(t, 29, "SELECT count(*) FROM orders WHERE status = 'pending'")

		// Each of the rest is closed once, with a row of its history and a notification.
		if x = f.run(b, "close", ids); x.State != batch.Done || x.Result.Count(string(batch.RowDone)) != 29 {
			t.Errorf("%s with %v", x.State, x.Result)
		}
		f.Want(t, 29, "SELECT count(*) FROM orders WHERE status = 'closed' AND close_reason = 'cancel'")
		f.Want(t, 29, "SELECT count(*) FROM order_history WHERE to_status = 'closed' AND actor = 'operator:zhou'")
		f.Want(t, 29, "SELECT count(*) FROM deliveries WHERE event_type = 'order.closed'")
		f.Want(t, 1, "SELECT count(*) FROM batch_rows WHERE batch_id = ? AND outcome = 'skip_final' AND state = 'skipped'", x.ID)
	})
}
