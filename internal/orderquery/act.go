package orderquery

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/order"
)

// QueryAct is the audit name of querying a supplier about an order.
const QueryAct = "order.query"

// Acts returns the act that queries the supplier about the order Ref.ID, after the audit row is
// committed, TryAct, and the one by which batches create compensations with this schedule. Errors:
// ErrCannotQuery, call.ErrDown.
func (a *Worker) Acts(s compensation.Schedule) []act.Kind {
	return []act.Kind{{
		Name: QueryAct, Object: "order", Permission: access.QueryOrders, Scope: access.Compensate, Load: order.Load,
		Do: func(ctx context.Context, _ db.Tx, _ act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			for i, s := range subjects {
				outs[i].Err = a.CanQuery(ctx, s.ID)
				outs[i].After = func(ctx context.Context) (any, error) { return a.Query(ctx, s.ID) }
			}
			return outs, nil
		},
		Set: &act.Set{
			Action: "query", Permission: access.RedriveCompensations, Scope: access.Compensate, Load: a.loadMany, Call: a.queryOne,
		},
	}, a.tryAct(), a.rerunning(s)}
}
