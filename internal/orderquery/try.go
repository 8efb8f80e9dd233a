package orderquery

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// TryAct is the audit name of querying a supplier about a payment that does not exist. The answer
// shows whether its settings for calls work.
const TryAct = "supplier.try"

// tryAct is the act on the supplier with the code Ref.ID. After returns the *suppliercall.Done of the
// call. Errors: ErrCannotQuery, suppliercall.ErrDown.
func (a *Worker) tryAct() act.Kind {
	find := func(code string) (supplier.Entry, bool) { return a.o.Settings.Current().Suppliers.Lookup(code) }
	return act.Kind{
		Name: TryAct, Object: "supplier", Permission: access.ProposeSettings, NoReason: true,
		Load: act.ByID(func(_ context.Context, _ bun.IDB, code string) (act.Subject, error) {
			s, ok := find(code)
			if !ok {
				return act.Subject{}, act.ErrNotFound
			}
			return act.Subject{Row: s.ID, ID: code, SupplierID: s.ID}, nil
		}),
		Do: act.Each(func(_ context.Context, _ db.Tx, _ act.Input, s act.Subject) (out act.Outcome, err error) {
			out.Err = a.queryableAt(s.Row)
			out.After = func(ctx context.Context) (any, error) {
				to, ok := find(s.ID)
				if !ok {
					return nil, act.ErrNotFound
				}
				return a.try(ctx, to)
			}
			return out, nil
		}),
	}
}

// try makes the call and stores its end.
func (a *Worker) try(ctx context.Context, to supplier.Entry) (*suppliercall.Done, error) {
	ref := supplier.Ref{
		Reference: "try" + strconv.FormatInt(a.o.DB.NewID(), 10), Amount: 1, Currency: "CNY", StartedAt: a.o.DB.NowTime().Add(-time.Hour),
	}
	done, err := a.o.Calls.Do(ctx, suppliercall.Call{To: to, Op: suppliercall.Query, Reference: ref.Reference},
		func(ctx context.Context) (suppliercall.Said, error) {
			answer, err := to.Can().Querier.Query(ctx, ref)
			return suppliercall.Said{Exchange: answer.Exchange, Status: suppliercall.StatusOf(answer)}, err
		})
	if err != nil {
		return nil, fmt.Errorf("query supplier %s: %w", to.Code, err)
	}
	return done, a.o.Calls.Keep(ctx, done)
}
