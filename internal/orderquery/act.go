package orderquery

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/order"
)

// QueryAct is the audit name of querying a supplier about an order.
const QueryAct = "order.query"

// Acts returns the act that queries the supplier about the order Ref.ID, after the audit row is
// committed, and TryAct. Errors: ErrCannotQuery, call.ErrDown.
func (a *Worker) Acts() []act.Kind {
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
	}, a.tryAct()}
}
