package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// maxTradeNo bounds a supplier's payment number, in bytes.
const maxTradeNo = 128

type paidParams struct {
	TradeNo string `json:"trade_no"`
	Amount  int64  `json:"amount"` // minor units
}

type refundParams struct {
	Amount int64 `json:"amount"` // minor units
}

// ofOrders returns the decisions about orders: open ones, and the refund of a paid one.
func (d *desk) ofOrders() []approval.Action {
	return []approval.Action{
		{
			Name: MarkPaid, Evidence: true, Fields: map[string]string{"trade_no": "text", "amount": "integer"}, Params: readPaid,
			Check: checkPaid, Ask: d.askOrder(saysUnpaid), Run: d.markPaid,
		},
		{
			Name: ForceClosed, Evidence: true, Ask: d.askOrder(saysMoney), Run: d.force(order.Closed),
		},
		{
			Name: ForceFailed, Evidence: true, Ask: d.askOrder(saysMoney), Run: d.force(order.Failed),
		},
		{
			Name: Refund, Always: true, Fields: map[string]string{"amount": "integer"}, Params: readRefund,
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

func readRefund(raw json.RawMessage) (any, error) {
	p, err := params[refundParams](raw)
	if err != nil {
		return nil, err
	}
	if n := p.(refundParams).Amount; n < 1 || n > money.MaxMinor {
		return nil, wrong("amount", fmt.Sprintf("use a number from 1 to %d (minor units)", int64(money.MaxMinor)))
	}
	return p, nil
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

func readPaid(raw json.RawMessage) (any, error) {
	p, err := params[paidParams](raw)
	if err != nil {
		return nil, err
	}
	m := p.(paidParams)
	m.TradeNo = strings.TrimSpace(m.TradeNo)
	if m.TradeNo == "" || len(m.TradeNo) > maxTradeNo || strings.ContainsFunc(m.TradeNo, func(r rune) bool {
		return unicode.IsControl(r) ||
			unicode.IsSpace(r)
	}) {
		return nil, wrong("trade_no", fmt.Sprintf("enter the supplier's payment number, at most %d characters", maxTradeNo))
	}
	return m, nil
}

// checkPaid requires the order's amount. A different amount becomes an amount_mismatch once the
// supplier reports it, and is accepted there.
func checkPaid(_ context.Context, _ bun.IDB, s act.Subject, p any) error {
	if p.(paidParams).Amount != s.Amount {
		return wrong("amount", fmt.Sprintf("the order is about %s %s: enter %d", s.TypedAmount(), s.Currency, s.Amount))
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
