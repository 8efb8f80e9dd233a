package decision

import (
	"context"
	"encoding/json"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

type paidParams struct {
	TradeNo string `json:"trade_no" kind:"word" max:"128" required:"true" says:"enter the supplier's payment number, at most 128 characters" says_zh:"请填渠道流水号，最多 128 个字，不含空格"`
	Amount  int64  `json:"amount" kind:"money"`
}

type refundParams struct {
	Amount int64 `json:"amount" kind:"money" required:"true"`
}

// ofOrders returns the decisions about orders: open ones, and the refund of a paid one.
func (d *desk) ofOrders() []act.Kind {
	return []act.Kind{
		{
			Name: MarkPaid, Params: act.ParamsOf[paidParams](), Do: act.Each(d.markPaid),
			Second: &act.Second{Evidence: true, Check: checkPaid, Query: d.queryOrder(saysUnpaid)},
		},
		{
			Name: ForceClosed, Do: d.force(order.Closed),
			Second: &act.Second{Evidence: true, Query: d.queryOrder(saysMoney)},
		},
		{
			Name: ForceFailed, Do: d.force(order.Failed),
			Second: &act.Second{Evidence: true, Query: d.queryOrder(saysMoney)},
		},
		{
			Name: Refund, Params: act.ParamsOf[refundParams](),
			// Reserve makes the refund, and the approval is that of the refund from then on.
			Do: act.Each(func(context.Context, db.Tx, act.Input, act.Subject) (act.Outcome, error) {
				return act.Outcome{}, act.ErrChanged
			}),
			Second: &act.Second{
				Always: true,
				Amount: func(p any) int64 { return p.(refundParams).Amount },
				Most: func(ctx context.Context, q bun.IDB, s act.Subject) (int64, error) {
					return refund.Refundable(ctx, q, s.Value.(*Subject).Order)
				},
				Ended:   func(act.Subject) bool { return false },
				Applies: func(s act.Subject) bool { return d.o.Refunds.CanRefund(s.Value.(*Subject).Order) },
				Reserve: d.refund,
			},
		},
	}
}

// refund makes the refund that an operator proposes, holds its money, and binds the approval to
// it.
func (d *desk) refund(ctx context.Context, tx db.Tx, a *act.Proposed, s act.Subject) error {
	names, err := access.Names(ctx, tx, []int64{a.Maker})
	if err != nil {
		return err
	}
	r, err := d.o.Refunds.Propose(ctx, tx, refund.Proposal{
		OrderNo: s.ID, Amount: a.Amount, Reason: a.Reason, ApprovalID: a.ID, Actor: approval.ByOperator + ":" + names[a.Maker],
	})
	if err != nil {
		return err
	}
	a.Action, a.Object, a.ObjectID, a.Params = refund.Action, refund.Object, r.RefundNo, json.RawMessage("{}")
	return nil
}

// checkPaid requires the order's amount. A different amount becomes an amount_mismatch once the
// supplier reports it, and is accepted there.
func checkPaid(_ context.Context, _ bun.IDB, s act.Subject, p any) error {
	if p.(paidParams).Amount != s.Amount {
		return wrong("amount", tOrderAmount, s.TypedAmount(), s.Currency, s.Amount).Telling(tTypeAmount, s.TypedAmount(), s.Currency)
	}
	return nil
}

// markPaid confirms the payment proved by the evidence, as a message of the supplier would.
func (d *desk) markPaid(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	o, p := s.Value.(*Subject).Order, in.Params.(paidParams)
	attempts, err := payment.AttemptsOf(ctx, tx, []int64{o.ID})
	if err != nil {
		return act.Outcome{}, err
	}
	at, ref := o.SupplierID, o.OrderNo
	if open := payment.OpenOf(attempts[o.ID]); open != nil {
		at, ref = open.At(o), open.SupplierRef
	}
	entry, ok := d.o.Settings.Current().Suppliers.ByID(at)
	if !ok {
		return act.Outcome{}, payment.ErrSupplier
	}
	return d.confirm(ctx, tx, &payment.Message{
		Supplier: entry,
		Content: supplier.Callback{
			OrderRef: ref, TradeNo: p.TradeNo, Amount: p.Amount, Currency: o.Currency, Status: supplier.Paid, RawStatus: MarkPaid,
			Identity: entry.Adapter.Identity(),
		},
		Source: payment.ByDecision(in.By.Name, in.Proposed.ID, payment.Waiver{}),
	})
}

// force ends the order, whatever its supplier may still do.
func (d *desk) force(to order.Status) doing {
	return act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
		after, err := d.o.Payments.Force(ctx, tx, s.Row, to, payment.ByDecision(in.By.Name, in.Proposed.ID, payment.Waiver{}))
		if err != nil {
			return act.Outcome{}, err
		}
		tx.OnEnd(func(err error) {
			if err == nil {
				after()
			}
		})
		return act.Outcome{Details: map[string]any{"order_no": s.ID, "status": string(to)}}, nil
	})
}
