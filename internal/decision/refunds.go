package decision

import (
	"context"
	"errors"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"

	"github.com/uptrace/bun"
)

// refundSucceeded is the end of a refund of which the buyer has the money.
const refundSucceeded = "succeeded"

type resolveParams struct {
	Outcome string `json:"outcome" choices:"succeeded|failed" required:"true" says:"use succeeded or failed, as the supplier's statement says" says_zh:"请按渠道对账单选择成功或失败"`
}

// loadRefund finds the refund of an exception about one; nil = it is about none.
func loadRefund(ctx context.Context, q bun.IDB, x *exception.Item) (*refund.Refund, error) {
	if x.Kind != exception.RefundFailed && x.Kind != exception.SupplierShort {
		return nil, nil
	}
	r, err := refund.ByNo(ctx, q, x.Subject)
	if errors.Is(err, refund.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// resolveRefund ends a refund of which the supplier will never give a clear answer, such as one
// refused with a word that is not listed.
func (d *desk) resolveRefund() act.Kind {
	about := func(s act.Subject) *refund.Refund { return s.Value.(*Subject).Refund }
	return act.Kind{
		Name: ResolveRefund, Params: act.ParamsOf[resolveParams](),
		Second: &act.Second{
			Evidence: true, Always: true,
			Applies: undecided(func(s *Subject) bool { return s.Refund != nil && s.Refund.Unresolved() }),
			Query: func(ctx context.Context, s act.Subject, p any) (*act.Live, error) {
				if about(s) == nil {
					return nil, act.ErrChanged
				}
				return d.o.Refunds.Live(ctx, about(s), p.(resolveParams).Outcome == refundSucceeded)
			},
			Lock: func(ctx context.Context, tx db.Tx, s act.Subject, _ any) error {
				if about(s) == nil {
					return act.ErrChanged
				}
				return d.o.Refunds.Lock(ctx, tx, about(s).ID)
			},
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			if about(s) == nil {
				return act.Outcome{}, act.ErrChanged
			}
			outcome, succeeded := exception.RefundNotMade, in.Params.(resolveParams).Outcome == refundSucceeded
			if succeeded {
				outcome = exception.RefundMade
			}
			if err := d.decide(ctx, tx, in, s, exception.Resolved, outcome, ""); err != nil {
				return act.Outcome{}, err
			}
			r, err := d.o.Refunds.Resolve(ctx, tx, about(s).ID, refund.Verdict{
				Succeeded: succeeded, Actor: in.By.Name, ApprovalID: in.Proposed.ID, MadeAt: in.Proposed.MadeAt,
			})
			if err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{Details: map[string]any{"refund_no": r.RefundNo, "status": string(r.Status)}}, nil
		}),
	}
}
