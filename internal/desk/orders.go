package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// maxTradeNo bounds a supplier's payment number, in bytes.
const maxTradeNo = 128

type paidParams struct {
	TradeNo  string `json:"trade_no"`
	Amount   int64  `json:"amount"` // minor units
	Evidence string `json:"evidence"`
	unverified
}

type forceParams struct {
	Evidence string `json:"evidence"`
	unverified
}

// ofOrders returns the decisions about open orders.
func (d *desk) ofOrders() []approval.Action {
	return []approval.Action{
		{
			Name: MarkPaid, Evidence: true, Fields: map[string]string{"trade_no": "text", "amount": "integer"}, Params: readPaid, Check: checkPaid, Ask: d.askOrder(saysUnpaid), Run: d.markPaid,
		},
		{
			Name: ForceClosed, Evidence: true, Params: params[forceParams], Ask: d.askOrder(saysMoney), Run: d.force(order.Closed),
		},
		{
			Name: ForceFailed, Evidence: true, Params: params[forceParams], Ask: d.askOrder(saysMoney), Run: d.force(order.Failed),
		},
	}
}

func readPaid(raw json.RawMessage) (any, error) {
	p, err := params[paidParams](raw)
	if err != nil {
		return nil, err
	}
	m := p.(paidParams)
	m.TradeNo = strings.TrimSpace(m.TradeNo)
	if m.TradeNo == "" || len(m.TradeNo) > maxTradeNo || strings.ContainsFunc(m.TradeNo, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
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
