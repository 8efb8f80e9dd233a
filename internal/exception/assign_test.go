package exception

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestAnExceptionIsAssignedAndSettledOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		item := &Item{Kind: LatePayment, OrderNo: "1"}
		report := func() {
			t.Helper()
			again := *item
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				Open(tx, w, d, []*Item{&again})
				return w.Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			if item.ID == 0 {
				item.ID = again.ID
			}
		}
		do := func(f func(context.Context, db.Tx) error) error { return d.Tx(t.Context(), f) }
		assign := func(id int64, to string) error {
			return do(func(ctx context.Context, tx db.Tx) error { return assign(ctx, tx, d, id, to) })
		}
		now := func() (i Item) {
			t.Helper()
			if err := d.Read.NewSelect().Model(&i).Where("x.id = ?", item.ID).Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			return i
		}
		settle := func() error {
			return do(func(ctx context.Context, tx db.Tx) error {
				return Decide(ctx, tx, d, item.ID, now().Version, Resolved, 7, string(RefundedElsewhere), "R1")
			})
		}
		report()
		if err := assign(item.ID, "li.hang"); err != nil || now().State != Assigned || now().Assignee != "li.hang" {
			t.Fatalf("assigned: %+v, %v", now(), err)
		}
		report() // the same fact again: it stays assigned
		if i := now(); i.State != Assigned || i.Seen != 2 {
			t.Errorf("reported again: %+v", i)
		}
		if err := settle(); err != nil || now().State != Resolved || now().ResolvedAt == nil {
			t.Fatalf("settled: %+v, %v", now(), err)
		}
		if err := settle(); !errors.Is(err, act.ErrChanged) {
			t.Errorf("what has ended is settled: %v", err)
		}
		if err := assign(item.ID, "wu.min"); !errors.Is(err, ErrEnded) {
			t.Errorf("what has ended is assigned: %v", err)
		}
		if err := assign(item.ID+1, "wu.min"); !errors.Is(err, ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
		report() // it happens again: it is unassigned
		if i := now(); i.State != Opened || i.Assignee != "" || i.ResolvedAt != nil {
			t.Errorf("after its end: %+v", i)
		}
	})
}
