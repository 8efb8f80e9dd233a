package batch_test

import (
	"context"
	"fmt"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/batch"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// crashes are the steps after whose effects the batch's process ends.
var crashes = map[int]bool{3: true, 4: true, 11: true}

// killed is the end of a process.
type killed struct{}

// dying returns the act with crashes: the process ends after acting on the rows, before
// anything else is done.
func dying(k act.Kind, step *int) act.Kind {
	do := k.Do
	k.Do = func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
		outs, err := do(ctx, tx, in, subjects)
		if *step++; crashes[*step] {
			panic(killed{})
		}
		return outs, err
	}
	return k
}

// survive runs f; true = its process ended in it.
func survive(t *testing.T, f func() error) (died bool) {
	t.Helper()
	defer func() {
		if x := recover(); x == (killed{}) {
			died = true
		} else if x != nil {
			panic(x)
		}
	}()
	if err := f(); err != nil {
		t.Fatal(err)
	}
	return false
}

// A process that ends in the middle of a step loses nothing: the next one continues, and each of
// 10,000 rows ends exactly once.
func TestACrashInTheMiddleDoesNothingTwice(t *testing.T) {
	t.Parallel()
	const all = 10_000
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		for range all / 1000 {
			put(t, d, notify.Exhausted, "CNY", 1000)
		}
		steps, died := 0, 0
		k.Batches = k.nodeOf(d, nil, dying(k.resending(d), &steps))
		p := k.plan(k.rows())
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		for k.find(p.ID).State == batch.Running {
			if !survive(t, func() error { _, err := k.StepNow(t.Context(), p.ID, 500); return err }) {
				continue
			}
			died++
			if x := k.find(p.ID); x.LeaseOwner == 0 || x.Ended() != x.ProcessedTo || x.Ended() != int64(steps-died)*500 {
				t.Fatalf("after crash %d: %+v", died, x)
			}
			if n, err := batch.ReleaseLeases(t.Context(), d, []int64{d.Boot()}); n != 1 ||
				err != nil { // as the next process does at its start
				t.Fatalf("%d leases are released, %v", n, err)
			}
		}
		if died != len(crashes) {
			t.Errorf("the process ended %d times", died)
		}
		end := k.find(p.ID)
		sums := end.Result.Sums(done)
		if end.State != batch.Done || len(sums) != 1 || sums[0].Orders != all || sums[0].Minor != all*100 || end.Steps != all/500 {
			t.Errorf("%s with %v after %d steps", end.State, end.Result, end.Steps)
		}
		if twice, lost := k.wrong(all); twice != 0 || lost != 0 {
			t.Errorf("%d were sent too often, %d not at all", twice, lost)
		}
		if n := count(t, d, fmt.Sprintf("SELECT count(*) FROM batch_rows WHERE batch_id = %d AND state = 'done' AND at IS NOT NULL",
			p.ID)); n != all {
			t.Errorf("%d rows are done", n)
		}
	})
}

// The negative control: with the same crashes, a runner that acts in one transaction and ends its
// rows in another sends some twice or never.
func TestANaiveRunnerDoublesOrLosesRows(t *testing.T) {
	t.Parallel()
	const all = 6000
	for _, endsFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("ends first: ", endsFirst), func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				k := open(t, d)
				for range all / 1000 {
					put(t, d, notify.Exhausted, "CNY", 1000)
				}
				p := k.plan(k.rows())
				if err := k.start(p, li); err != nil {
					t.Fatal(err)
				}
				died := 0
				for step, more := 0, true; more; {
					if survive(t, func() (err error) { more, err = k.naive(p.ID, endsFirst, &step); return err }) {
						died++ // the next process continues
					}
				}
				twice, lost := k.wrong(all)
				want := [2]int{len(crashes) * 500, 0}
				if endsFirst {
					want = [2]int{0, len(crashes) * 500}
				}
				if died != len(crashes) || [2]int{twice, lost} != want {
					t.Errorf("after %d crashes %d were sent too often, %d not at all: want %v, or the test of the runner shows nothing",
						died, twice, lost, want)
				}
			})
		})
	}
}

// naive does one step in two transactions; more = there are rows left.
func (k *desk) naive(id int64, endsFirst bool, step *int) (more bool, err error) {
	ctx, kind := k.Context(), k.resending(k.db)
	var rows []batch.Row
	if err := k.db.NewSelect().Model(&rows).Where("br.batch_id = ?", id).Where("br.state = ?",
		batch.RowWaiting).OrderExpr("br.number").Limit(500).Scan(ctx); err != nil || len(rows) == 0 {
		return false, err
	}
	refs, numbers := make([]act.Ref, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		refs[i].Row, numbers[i] = r.ObjectID, r.Number
	}
	acts := func(ctx context.Context, tx db.Tx) error {
		subjects, err := kind.Load(ctx, tx, refs)
		if err != nil {
			return err
		}
		params, err := kind.Params.Read(nil)
		if err == nil {
			_, err = kind.Do(ctx, tx, act.Input{By: li, Params: params}, subjects)
		}
		return err
	}
	ends := func(ctx context.Context, tx db.Tx) error {
		_, err := tx.NewRaw("UPDATE batch_rows SET state = 'done' WHERE batch_id = ? AND number IN (?)", id, bun.List(numbers)).Exec(ctx)
		return err
	}
	first, second := acts, ends
	if endsFirst {
		first, second = ends, acts
	}
	if err := k.db.Tx(ctx, first); err != nil {
		return false, err
	}
	if *step++; crashes[*step] {
		panic(killed{})
	}
	return true, k.db.Tx(ctx, second)
}

// wrong counts the surplus sends, and the deliveries never sent, out of all of them.
func (k *desk) wrong(all int) (twice, lost int) {
	k.Helper()
	for _, n := range k.nudged {
		twice += n - 1
	}
	if left := len(k.rows(notify.Exhausted)); left != all-len(k.nudged) {
		k.Errorf("%d are exhausted, %d were nudged", left, len(k.nudged))
	}
	return twice, all - len(k.nudged)
}
