package orderquery

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// rerunning creates a compensation for each order, which keeps querying.
func (a *Worker) rerunning(s compensation.Schedule) act.Kind {
	return act.Kind{
		Name: "order.rerun", Object: "order", Permission: access.RedriveCompensations, Scope: access.Compensate, Load: a.loadRerun,
		Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			items := make([]*compensation.Item, len(subjects))
			for i, x := range subjects {
				items[i] = rerun.Stuck(x.Value.(*job).Order, x.SupplierID)
				items[i].MadeBy = in.By.Name
			}
			w := tx.Writes()
			s.Open(w, a.o.DB, items...)
			return make([]act.Outcome, len(subjects)), w.Exec(ctx)
		},
		Set: &act.Set{Action: "rerun"},
	}
}

// loadMany reads the orders of Ref.Row, with what querying each would do.
func (a *Worker) loadMany(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, attempts, err := payment.Orders(ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i, o := range rows {
		j := &job{Order: o, attempts: attempts[o.ID]}
		subjects[i] = act.Subject{
			Row: o.ID, ID: o.OrderNo, OrderNo: o.OrderNo, Version: o.Version, MerchantID: o.MerchantID, Amount: o.Amount,
			Currency:   o.Currency,
			SupplierID: j.at(), Effect: a.effect(j), Value: j,
		}
	}
	return subjects, nil
}

// effect returns what querying an order would do. If no supplier can be queried, the result
// of a started payment is unknown.
func (a *Worker) effect(j *job) act.Effect {
	s, ok := a.o.Settings.Current().Suppliers.ByID(j.at())
	switch {
	case !j.Status.Open():
		return act.Final
	case ok && s.Can().Querier != nil:
		return act.WillQuery
	case j.Status == order.Pending:
		return act.Blocked
	}
	return act.Unknown
}

// loadRerun is loadMany, but leaves out orders that already have an open compensation.
func (a *Worker) loadRerun(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	all, err := a.loadMany(ctx, q, refs)
	if err != nil || len(all) == 0 {
		return all, err
	}
	ids := make([]int64, len(all))
	for i, s := range all {
		ids[i] = s.Row
	}
	var open []int64
	err = q.NewRaw("SELECT subject_id FROM compensations WHERE subject_id IN (?) AND subject_kind = ? AND kind = ? AND state IN (?)",
		bun.List(ids), compensation.OfOrder, compensation.Rerun, bun.List(compensation.Moves.Open())).Scan(ctx, &open)
	if err != nil {
		return nil, fmt.Errorf("read open compensations of orders: %w", err)
	}
	has := make(map[int64]bool, len(open))
	for _, id := range open {
		has[id] = true
	}
	for i := range all {
		if has[all[i].Row] && all[i].Effect.Acts() {
			all[i].Effect = act.Blocked
		}
	}
	return all, nil
}

// queryOne queries one order of a batch. The answer is confirmed when it returns.
func (a *Worker) queryOne(ctx context.Context, s act.Subject) act.CallResult {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	x, err := a.QueryOpen(ctx, s.Row)
	switch {
	case errors.Is(err, ErrOver):
		return act.CallResult{Cause: "over"}
	case errors.Is(err, ErrCannotQuery):
		return act.CallResult{Failed: true, Cause: string(compensation.NotQueryable)}
	case errors.Is(err, suppliercall.ErrDown), errors.Is(err, context.DeadlineExceeded):
		return act.CallResult{Failed: true, Cause: string(compensation.SupplierTimeout)}
	case err != nil:
		return act.CallResult{Failed: true, Cause: string(compensation.Database)}
	case x.State == supplier.AnswerUnknown:
		return act.CallResult{Failed: true, Cause: string(CauseOf(x.Exchange.Class))}
	}
	return act.CallResult{Cause: string(x.State)}
}

// CauseOf maps the class of a call to a cause.
func CauseOf(c supplier.Class) compensation.Cause {
	switch c {
	case supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS:
		return compensation.SupplierTimeout
	case supplier.ClassBadSignature:
		return compensation.SupplierSignature
	case supplier.ClassRefused:
		return compensation.SupplierRefused
	default:
		return compensation.SupplierUnknown
	}
}
