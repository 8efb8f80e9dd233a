package compensation

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/bulk"

	"github.com/uptrace/bun"
)

// Batch runs many items again. Replayed writes are excluded: two people decide about each one.
func (a Acts) Batch() bulk.Action {
	return bulk.Action{Name: "redrive", Object: ActObject, Kind: act.Kind{
		Name: RedriveAct, Object: ActObject, Permission: access.RedriveCompensations, Scope: access.Compensate,
		Load: func(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			all, err := load(ctx, q, refs)
			for i := range all {
				all[i].Prospect = prospect(all[i].Value.(*Item))
			}
			return all, err
		},
		Do: func(ctx context.Context, tx db.Tx, _ act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			items := make([]*Item, len(subjects))
			for i, s := range subjects {
				items[i] = s.Value.(*Item)
			}
			again, err := a.again(ctx, tx, items)
			if err != nil {
				return nil, err
			}
			changed := make(map[int64]bool, len(again))
			for _, x := range again {
				changed[x.ID] = true
			}
			outs := make([]act.Outcome, len(subjects))
			for i, x := range items {
				if !changed[x.ID] { // it has begun to run, or its subject has another open one
					outs[i] = act.Outcome{Prospect: act.Blocked, Err: ErrRunning}
				}
			}
			return outs, nil
		},
	}}
}

// prospect returns what running an item again would do.
func prospect(x *Item) act.Prospect {
	switch {
	case x.State == Running:
		return act.Blocked
	case !Moves.Can(x.State, Waiting):
		return act.Final
	case x.Kind == Rerun:
		return act.WillQuery
	}
	return act.Will
}
