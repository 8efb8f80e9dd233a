package batch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// queried is an action that makes a call for each delivery, outside any transaction.
type queried struct {
	mu    sync.Mutex
	calls map[int64]int
	says  func(n int) act.CallResult // of the n-th call
}

func (a *queried) kind() act.Kind {
	a.calls = map[int64]int{}
	return act.Kind{
		Name: "order.query", Object: "delivery", Permission: access.QueryOrders,
		Load: func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			all := make([]act.Subject, len(refs))
			for i, r := range refs {
				all[i] = act.Subject{Row: r.Row, Effect: act.WillQuery, SupplierID: 1}
			}
			return all, nil
		},
		Set: &act.Set{Action: "query", Call: func(_ context.Context, s act.Subject) act.CallResult {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.calls[s.Row]++
			return a.says(len(a.calls))
		}},
	}
}

// query plans and starts calls for n rows, which need not exist.
func (k *desk) query(n int) *batch.Batch {
	k.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	p, err := k.Plan(k.Context(), batch.Proposal{Action: "query", Object: "delivery", By: li, IDs: ids})
	if err == nil {
		err = k.start(p, li)
	}
	if err != nil {
		k.Fatal(err)
	}
	return p
}

func TestABatchIsPausedResumedAndStopped(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 50)
		p := k.plan(k.rows())
		if err := k.does(batch.PauseAct, p, ""); !errors.Is(err, batch.ErrState) {
			t.Errorf("a pause of a plan: %v", err)
		}
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		if n, err := k.StepNow(t.Context(), p.ID, 10); n != 10 || err != nil {
			t.Fatalf("a step of %d, %v", n, err)
		}
		if err := k.does(batch.PauseAct, p, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := k.StepNow(t.Context(), p.ID, 10); err == nil || len(k.rows(notify.Exhausted)) != 40 {
			t.Errorf("a step of a batch that is paused: %v", err)
		}
		if err := k.does(batch.ResumeAct, p, ""); err != nil {
			t.Fatal(err)
		}
		if n, err := k.StepNow(t.Context(), p.ID, 10); n != 10 || err != nil {
			t.Fatalf("a step of %d, %v", n, err)
		}
		if err := k.does(batch.RateAct, p, `{"rate":7}`); err != nil || k.find(p.ID).Rate != 7 {
			t.Errorf("another rate: %v", err)
		}
		if err := k.does(batch.StopAct, p, ""); err != nil {
			t.Fatal(err)
		}
		if err := k.does(batch.ResumeAct, p, ""); !errors.Is(err, batch.ErrState) {
			t.Errorf("a batch that was stopped is resumed: %v", err)
		}
		if err := k.RunNow(t.Context(), p.ID); err != nil || len(k.rows(notify.Exhausted)) != 30 || len(k.nudged) != 20 {
			t.Errorf("%d were sent, %v", len(k.nudged), err)
		}
		end := k.find(p.ID)
		rows, _, err := batch.Rows(t.Context(), d, p.ID, batch.RowQuery{State: string(batch.RowWaiting), Limit: 100})
		if err != nil || len(rows) != 30 || end.State != batch.Stopped || end.StoppedBecause != batch.ByPerson || end.Ended() != 20 ||
			end.FinishedAt == nil {
			t.Errorf("%d rows are left, %v, of %+v", len(rows), err, end)
		}
	})
}

func TestTwoNodesRunOneBatchOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 800)
		p := k.plan(k.rows())
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		var runners []*batch.Runner
		for range 2 {
			runners = append(runners, batch.NewRunner(k.node(d, nil)))
		}
		waittest.Until(t, "the batch ends", func() bool {
			for _, r := range runners {
				if err := r.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return k.find(p.ID).State != batch.Running
		})
		for _, r := range runners {
			r.Close(context.Background())
		}
		if end := k.find(p.ID); end.State != batch.Done || end.Result.Count(done) != 800 || len(k.nudged) != 800 {
			t.Errorf("%s with %v, %d nudged", end.State, end.Result, len(k.nudged))
		}
		for id, n := range k.nudged {
			if n != 1 {
				t.Errorf("%d was sent %d times", id, n)
			}
		}
	})
}

// Rows that keep failing for one cause end the batch; a few failures among many do not.
func TestABatchStopsWhereTooManyFailForOneCause(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fails := &queried{says: func(n int) act.CallResult { return act.CallResult{Failed: n%4 == 0, Cause: "supplier_timeout"} }}
		k := open(t, d, fails.kind())
		p := k.query(400)
		if err := k.RunNow(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		end := k.find(p.ID)
		if n := end.Result.Count(string(batch.RowFailed)); end.State != batch.Stopped || end.StoppedBecause != "supplier_timeout" || n < 20 {
			t.Errorf("%s because %s after %d failures", end.State, end.StoppedBecause, n)
		}
		taken, err := stopped(t, d)
		if err != nil || len(taken) != 1 || taken[0].ID != p.ID {
			t.Errorf("to be alerted: %v, %v", taken, err)
		}
		if taken, err = stopped(t, d); err != nil || len(taken) != 0 {
			t.Errorf("alerted again: %v, %v", taken, err)
		}
		fails.says = func(n int) act.CallResult { return act.CallResult{Failed: n%8 == 0, Cause: "supplier_timeout"} }
		clear(fails.calls)
		p = k.query(400)
		if err := k.RunNow(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		if end := k.find(p.ID); end.State != batch.Done || end.Result.Count(string(batch.RowFailed)) != 50 {
			t.Errorf("with few failures: %s with %v", end.State, end.Result)
		}
		for id, n := range fails.calls {
			if n != 1 {
				t.Errorf("%d was queried %d times", id, n)
			}
		}
	})
}

func stopped(t *testing.T, d *db.DB) (all []*batch.Batch, err error) {
	err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		all, err = batch.TakeUnalerted(ctx, tx, d)
		return err
	})
	return all, err
}

func TestABatchStopsWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		answers := &queried{says: func(int) act.CallResult { return act.CallResult{Cause: "paid"} }}
		kind := answers.kind()
		k := open(t, d, kind)
		p := k.query(300)
		node := k.node(d, func(int64) bool {
			answers.mu.Lock()
			defer answers.mu.Unlock()
			return len(answers.calls) >= 100
		}, kind)
		if err := node.RunNow(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		end := k.find(p.ID)
		if n := len(answers.calls); end.State != batch.Stopped || end.StoppedBecause != batch.ByBreaker || n < 100 || n > 116 ||
			end.Ended() != int64(n) {
			t.Errorf("%s because %s after %d calls, %d begun", end.State, end.StoppedBecause, n, end.Ended())
		}
	})
}

// pauseHook notes that the lease of a batch was not renewed, since the batch no longer runs.
type pauseHook struct{ noticed atomic.Bool }

func (*pauseHook) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (h *pauseHook) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	if strings.HasPrefix(e.Query, "UPDATE batches SET lease_until") && e.Result != nil {
		if n, err := e.Result.RowsAffected(); err == nil && n == 0 {
			h.noticed.Store(true)
		}
	}
}

// No call begins once the batch is paused; later it continues where it stopped.
func TestAPauseBeginsNoFurtherCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		pauses := new(pauseHook)
		d.DB = d.DB.WithQueryHook(pauses)
		hold := make(chan struct{})
		slow := &queried{}
		kind := slow.kind()
		kind.Set.Call = func(_ context.Context, s act.Subject) act.CallResult {
			slow.mu.Lock()
			slow.calls[s.Row]++
			slow.mu.Unlock()
			<-hold
			return act.CallResult{Cause: "paid"}
		}
		k := open(t, d, kind)
		p := k.query(100)
		ended := make(chan error, 1)
		go func() { ended <- k.RunNow(context.Background(), p.ID) }()
		begun := func() int {
			slow.mu.Lock()
			defer slow.mu.Unlock()
			return len(slow.calls)
		}
		waittest.Until(t, "16 calls are made", func() bool { return begun() >= 16 })
		if err := k.does(batch.PauseAct, p, ""); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the pause is noticed", pauses.noticed.Load)
		close(hold)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if x := k.find(p.ID); begun() != 16 || x.State != batch.Paused || x.Ended() != 16 {
			t.Fatalf("%d calls were made, %s with %d begun", begun(), x.State, x.Ended())
		}
		if err := k.does(batch.ResumeAct, p, ""); err != nil {
			t.Fatal(err)
		}
		if err := k.RunNow(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		for id, n := range slow.calls {
			if n != 1 {
				t.Errorf("%d was queried %d times", id, n)
			}
		}
		if x := k.find(p.ID); x.State != batch.Done || begun() != 100 {
			t.Errorf("%s after %d calls", x.State, begun())
		}
	})
}

// If the amount drifts while the batch runs, the batch stops half-way.
func TestADriftInTheMiddleStopsTheBatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 200)
		p := k.plan(k.rows())
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		if _, err := k.StepNow(t.Context(), p.ID, 50); err != nil {
			t.Fatal(err)
		}
		_, err := d.NewRaw(
			"UPDATE deliveries SET status = 'delivered' WHERE id IN (SELECT object_id FROM batch_rows WHERE number BETWEEN 60 AND 69)").Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.StepNow(t.Context(), p.ID, 50); err != nil {
			t.Fatal(err)
		}
		if x := k.find(p.ID); x.State != batch.Stopped || x.StoppedBecause != batch.ByDrift || x.Ended() != 100 {
			t.Errorf("%s because %s, %d begun", x.State, x.StoppedBecause, x.Ended())
		}
	})
}
