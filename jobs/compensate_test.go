package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
	"backstop/internal/compensation"

	"github.com/hibiken/asynq"
)

var quickSteps = compensation.Schedule{time.Millisecond, time.Millisecond}

// stuckJobs returns jobs with a kind that counts its runs and returns the given result.
func stuckJobs(t *testing.T, d *db.DB, says compensation.Result) (*Jobs, *atomic.Int64) {
	var runs atomic.Int64
	kind := compensation.Kind{
		Name: compensation.Rerun, Check: func(json.RawMessage) error { return nil },
		Run: func(context.Context, compensation.Item) compensation.Result { runs.Add(1); return says },
	}
	runner := compensation.NewRunner(compensation.Options{
		DB: d, Kinds: []compensation.Kind{kind}, Schedule: quickSteps, Concurrency: 2, PerLane: 2, Time: time.Second,
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { runner.Close(context.Background()) })
	return &Jobs{o: Options{DB: d, Compensations: runner, Log: slog.New(slog.DiscardHandler)}}, &runs
}

func openStuck(t *testing.T, d *db.DB, n int64) *compensation.Item {
	t.Helper()
	x := &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierTimeout, SubjectKind: compensation.OfOrder, SubjectID: n, SupplierID: n,
		Amount: 1998, Currency: "CNY", MadeBy: "test",
	}
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		quickSteps.Open(w, d, x)
		return w.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func stateOf(t *testing.T, d *db.DB, id int64) compensation.State {
	t.Helper()
	x, _, err := compensation.Find(t.Context(), d.Read, id)
	if err != nil || x == nil {
		t.Fatalf("find: %v", err)
	}
	return x.State
}

// A task through a real Redis contains the ids to run; the tick finds those without a task.
func TestCompensationsRunByTaskAndByTick(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		redis := queuetest.Start(t)
		j, runs := stuckJobs(t, d, compensation.Succeeded(""))
		client := queue.New(redis.Client(), queue.Config{})
		mux := asynq.NewServeMux()
		mux.HandleFunc(queue.TaskCompensate, j.compensate)
		server := asynq.NewServerFromRedisClient(redis.Client(), queue.ServerConfig(queue.CompensateGroup, slog.New(slog.DiscardHandler)))
		if err := server.Start(mux); err != nil {
			t.Fatal(err)
		}
		defer server.Shutdown()
		x := openStuck(t, d, 1)
		waittest.Until(t, "it is due", func() bool {
			row, _, err := compensation.Find(t.Context(), d.Read, x.ID)
			return err == nil && *row.NextAt <= d.Now()
		})
		if err := client.Compensate(t.Context(), []queue.Nudge{{Delivery: x.ID, Recipient: x.Lane}}); err != nil {
			t.Fatal(err)
		}
		wait := func(id int64, nudge func()) {
			t.Helper()
			waittest.Until(t, "it is done", func() bool {
				nudge()
				return stateOf(t, d, id) == compensation.Done
			})
		}
		wait(x.ID, func() {})
		y := openStuck(t, d, 2)
		wait(y.ID, func() {
			if err := j.compensations(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		if runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
		poisoned := asynq.NewTask(queue.TaskCompensate, []byte(`{"x":1}`))
		if err := j.compensate(t.Context(), poisoned); err == nil {
			t.Error("a task that we never write is accepted")
		}
	})
}

// A dead compensation raises its own alert once, with its money.
func TestADeadCompensationIsAlerted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		j, _ := stuckJobs(t, d, compensation.DeadLetter(compensation.NotQueryable, "no query"))
		x := openStuck(t, d, 1)
		waittest.Until(t, "it is dead", func() bool {
			if err := j.compensations(t.Context()); err != nil {
				t.Fatal(err)
			}
			return stateOf(t, d, x.ID) == compensation.Dead
		})
		w := watcher{o: Options{DB: d, Alerts: Alerts{Merchant: func(int64) string { return "" }}}}
		for range 2 {
			if err := d.Tx(t.Context(), w.gather); err != nil {
				t.Fatal(err)
			}
		}
		var rows []alert.Alert
		if err := d.Read.NewSelect().Model(&rows).Scan(t.Context()); err != nil || len(rows) != 1 {
			t.Fatalf("%d alerts, %v", len(rows), err)
		}
		if a := rows[0]; a.Rule != alert.CompensationDead || a.Count != 1 || a.Sums.List()[0] != "CNY 19.98" {
			t.Errorf("the alert is %+v", a)
		}
	})
}

// A compensation that is over is removed with its attempts when its retention ends; an open one
// stays.
func TestOldCompensationsAreRemovedWithTheirTries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		redis := queuetest.Start(t)
		old := d.Now() - (48 * time.Hour).Microseconds()
		for i, state := range compensation.Moves.Statuses() {
			for _, at := range []int64{old, d.Now()} {
				id := db.IDAt(at) + int64(i)
				var finished *int64
				if !compensation.Moves.Of(state).Open {
					finished = &at
				}
				_, err := d.NewRaw(
					"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, lane, state, max_attempts, made_by, opened_at, finished_at) VALUES (?, 'rerun', 'database', 'order', ?, 1, ?, 3, 'test', ?, ?)", id, id, state, at, finished).Exec(t.Context())
				if err == nil {
					_, err = d.NewRaw("INSERT INTO compensation_tries (id, compensation_id, number, at) VALUES (?, ?, 1, ?)", id, id,
						at).Exec(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		// A compensation that was opened long ago and died today stays for its retention.
		late := db.IDAt(old) + 50
		if _, err := d.NewRaw(
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, lane, state, max_attempts, made_by, opened_at, finished_at) VALUES (?, 'rerun', 'database', 'order', 1, 1, 'dead', 3, 'test', ?, ?)", late, old, d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		j := &Jobs{o: Options{
			DB: d, Queue: queue.New(redis.Client(), queue.Config{}), Log: slog.New(slog.DiscardHandler),
			Retention: Retention{
				Callbacks: 240 * time.Hour, Attempts: 240 * time.Hour, Notifications: 240 * time.Hour,
				Reports: 240 * time.Hour, History: 24 * time.Hour,
			},
		}}
		if err := j.cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]int{
			"SELECT count(*) FROM compensations": 8, "SELECT count(*) FROM compensation_tries": 7,
			"SELECT count(*) FROM compensations WHERE state IN ('waiting', 'running')": 4,
		} {
			var n int
			if err := d.Read.NewRaw(query).Scan(t.Context(), &n); err != nil || n != want {
				t.Errorf("%s: %d, %v; want %d", query, n, err, want)
			}
		}
	})
}
