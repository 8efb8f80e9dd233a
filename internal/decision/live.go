package decision

import (
	"context"
	"errors"
	"time"

	"backstop/internal/act"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// querying is a Second's Query.
type querying = func(ctx context.Context, s act.Subject, params any) (*act.Live, error)

// queryOrder queries the order; contradicts says which answers rule the decision out.
func (d *desk) queryOrder(contradicts func(orderquery.Answer) bool) querying {
	return func(ctx context.Context, s act.Subject, _ any) (*act.Live, error) {
		answer, err := d.o.Querier.Query(ctx, s.ID)
		return d.live(answer, err, contradicts)
	}
}

// queryMessage queries the payment of an exception's message, by the reference in the message:
// the order may have another one by now, or there may be no order.
func (d *desk) queryMessage(ctx context.Context, s act.Subject, _ any) (*act.Live, error) {
	about := s.Value.(*Subject)
	m, err := d.message(ctx, d.o.DB.Read, about)
	if err != nil {
		return nil, err
	}
	answer, err := d.o.Querier.QueryReference(ctx, m.Supplier.ID, about.orderNo(), supplier.Ref{
		Reference: m.Content.OrderRef, Amount: m.Content.Amount, Currency: m.Content.Currency, StartedAt: startOf(about),
	})
	return d.live(answer, err, saysRefunded(m))
}

// startOf returns the latest time at which the payment of an exception was started.
func startOf(s *Subject) time.Time {
	if s.Order != nil {
		return time.UnixMicro(s.Order.CreatedAt)
	}
	return time.UnixMicro(s.Exception.OpenedAt)
}

// live returns an answer as stored in approvals. No answer counts as unknown: a supplier that
// is gone must not block a decision forever.
func (d *desk) live(answer orderquery.Answer, err error, contradicts func(orderquery.Answer) bool) (*act.Live, error) {
	now := d.o.DB.Now()
	switch {
	case errors.Is(err, orderquery.ErrCannotQuery):
		return &act.Live{At: now}, nil
	case errors.Is(err, suppliercall.ErrDown):
		return &act.Live{Answer: string(supplier.AnswerUnknown), At: now}, nil
	case errors.Is(err, order.ErrNotFound):
		return nil, act.ErrNotFound
	case err != nil:
		return nil, err
	}
	l := &act.Live{Answer: suppliercall.StatusOf(answer.Answer), Call: answer.Call, At: now}
	l.Contradicts = l.Verified() && contradicts(answer)
	return l, nil
}

// saysUnpaid contradicts a decision that an order is paid.
func saysUnpaid(x orderquery.Answer) bool { return x.State != supplier.AnswerPaid || x.Returned() }

// saysMoney contradicts giving up an order: the money is there, or may still come.
func saysMoney(x orderquery.Answer) bool {
	return x.State == supplier.AnswerPaid && !x.Returned() || x.State == supplier.AnswerPaying
}

// saysRefunded contradicts taking a message's money: it went back, or the supplier now reports
// another amount.
func saysRefunded(m *payment.Message) func(orderquery.Answer) bool {
	return func(x orderquery.Answer) bool {
		return x.Returned() || x.State == supplier.AnswerPaid && x.Says.TradeNo == m.Content.TradeNo &&
			(x.Says.Amount != m.Content.Amount || x.Says.Currency != m.Content.Currency)
	}
}
