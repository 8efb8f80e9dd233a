package jobs

import (
	"context"
	"time"

	"backstop/internal/base/db"
)

// Leases of the work that one node does for all.
const (
	foldLedger  = "fold_ledger"
	foldReports = "fold_reports"
	// foldLease is for how long nobody folds after the end of a node, at most; with the next tick,
	// another one folds within 5 s.
	foldLease = 4 * time.Second
)

// onOneNode returns work that is done only while this node has the lease: two nodes that add to
// the same rows would wait for each other's locks. A lease is renewed at half its time; doing so
// with every run would cost a commit each second.
func (j *Jobs) onOneNode(lease string, run func(context.Context) error) func(context.Context) error {
	var until time.Time
	return func(ctx context.Context) error {
		if time.Until(until) < foldLease/2 {
			queried := time.Now()
			mine, err := j.o.DB.Lease(ctx, lease, foldLease)
			if err != nil || !mine {
				return err
			}
			until = queried.Add(foldLease)
		}
		return run(ctx)
	}
}

// yieldFolds lets another node fold at once.
func (j *Jobs) yieldFolds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, lease := range []string{foldLedger, foldReports} {
		if err := j.o.DB.Yield(ctx, lease); err != nil {
			j.o.Log.Warn("let another node fold", "error", db.ErrorText(err))
		}
	}
}
