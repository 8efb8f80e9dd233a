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
func (d *desk) ofOrders() []approval.Action {
	return []approval.Action{
		{
			Name: MarkPaid, Evidence: true, Params: act.ParamsOf[paidParams](),
			Check: checkPaid, Ask: d.queryOrder(saysUnpaid), Run: d.markPaid,
		},
		{
			Name: ForceClosed, Evidence: true, Ask: d.queryOrder(saysMoney), Run: d.force(order.Closed),
		},
		{
			Name: ForceFailed, Evidence: true, Ask: d.queryOrder(saysMoney), Run: d.force(order.Failed),
		},
		{
			Name: Refund, Always: true, Params: act.ParamsOf[refundParams](),
			Amount:  func(p any) int64 { return p.(refundParams).Amount },
			Over:    func(act.Subject) bool { return false },
			Offered: func(s act.Subject) bool { return d.o.Refunds.CanRefund(s.Value.(*Subject).Order) },
			Hold:    d.refund,
			// Hold makes the refund, and the approval is that of the refund from then on.
			Run: func(context.Context, db.Tx, approval.Decided, act.Subject) (approval.Ran, error) {
				return approval.Ran{}, act.ErrChanged
			},
		},
	}
}

// refund makes the refund that an operator proposes, holds its money, and binds the approval to
// it.
func (d *desk) refund(ctx context.Context, tx db.Tx, a *approval.Approval, s act.Subject) error {
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
func (d *desk) markPaid(ctx context.Context, tx db.Tx, a approval.Decided, s act.Subject) (approval.Ran, error) {
	o, p := s.Value.(*Subject).Order, a.Params.(paidParams)
	attempts, err := payment.AttemptsOf(ctx, tx, []int64{o.ID})
	if err != nil {
		return approval.Ran{}, err
	}
	at, ref := o.SupplierID, o.OrderNo
	if open := payment.OpenOf(attempts[o.ID]); open != nil {
		at, ref = open.At(o), open.SupplierRef
	}
	entry, ok := d.o.Settings.Current().Suppliers.ByID(at)
	if !ok {
		return approval.Ran{}, payment.ErrSupplier
	}
	return d.confirm(ctx, tx, &payment.Message{
		Supplier: entry,
		Content: supplier.Callback{
			OrderRef: ref, TradeNo: p.TradeNo, Amount: p.Amount, Currency: o.Currency, Status: supplier.Paid, RawStatus: MarkPaid,
			Identity: entry.Adapter.Identity(),
		},
		Source: payment.ByDecision(a.Checker.Name, a.ID, payment.Waiver{}),
	})
}

// force ends the order, whatever its supplier may still do.
func (d *desk) force(to order.Status) func(context.Context, db.Tx, approval.Decided, act.Subject) (approval.Ran, error) {
	return func(ctx context.Context, tx db.Tx, a approval.Decided, s act.Subject) (approval.Ran, error) {
		after, err := d.o.Payments.Force(ctx, tx, s.Row, to, payment.ByDecision(a.Checker.Name, a.ID, payment.Waiver{}))
		return approval.Ran{Result: map[string]any{"order_no": s.ID, "status": string(to)}, After: after}, err
	}
}
