package jobs

import (
	"context"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

// Of two nodes one folds; the other one takes over as soon as the first one stops, or within 5 s
// after it has died.
func TestOneNodeFolds(t *testing.T) {
	t.Parallel()
	d, _, url := dbtest.WatchedPostgres(t)
	ran := map[string]int{}
	node := func(name string, d *db.DB) (j *Jobs, run func()) {
		j = &Jobs{o: Options{DB: d}}
		work := j.onOneNode(foldLedger, func(context.Context) error { ran[name]++; return nil })
		return j, func() {
			t.Helper()
			if err := work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, runFirst := node("first", d)
	_, runSecond := node("second", dbtest.Open(t, db.Options{URL: url}))
	for range 3 {
		runFirst()
		runSecond()
	}
	if ran["first"] != 3 || ran["second"] != 0 {
		t.Errorf("folds by node: %v", ran)
	}
	first.yieldFolds(t.Context())
	runSecond()
	if ran["second"] != 1 {
		t.Errorf("after the first node has stopped: %v", ran)
	}
	if died := time.Now(); !waittest.Within(time.Minute, func() bool { runFirst(); return ran["first"] > 3 }) {
		t.Errorf("after the second node has died: %v", ran)
	} else if took := time.Since(died); took > 5*time.Second {
		t.Errorf("continued after %s", took)
	}
}
