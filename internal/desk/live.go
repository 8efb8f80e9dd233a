package desk

import (
	"context"
	"errors"
	"time"

	"backstop/internal/act"
	"backstop/internal/advance"
	"backstop/internal/approval"
	"backstop/internal/call"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
)

// asking is an Action's Ask.
type asking = func(ctx context.Context, s act.Subject, params any) (*approval.Live, error)

// askOrder asks about the order; contradicts says which answers nothing may be decided
// against.
func (d *desk) askOrder(contradicts func(advance.Answer) bool) asking {
	return func(ctx context.Context, s act.Subject, _ any) (*approval.Live, error) {
		answer, err := d.o.Asker.Ask(ctx, s.ID)
		return d.live(answer, err, contradicts)
	}
}

// askMessage asks about the payment of an exception's message, by the reference that it
// came with: the order may have another one by now, or be none.
func (d *desk) askMessage(ctx context.Context, s act.Subject, _ any) (*approval.Live, error) {
	about := s.Value.(*Subject)
	m, err := d.message(ctx, d.o.DB.Read, about)
	if err != nil {
		return nil, err
	}
	answer, err := d.o.Asker.AskReference(ctx, m.Supplier.ID, about.orderNo(), supplier.Ref{
		Reference: m.Content.OrderRef, Amount: m.Content.Amount, Currency: m.Content.Currency, StartedAt: startOf(about),
	})
	return d.live(answer, err, saysRefunded(m))
}

// startOf is when the payment of an exception was started, at the latest.
func startOf(s *Subject) time.Time {
	if s.Order != nil {
		return time.UnixMicro(s.Order.CreatedAt)
	}
	return time.UnixMicro(s.Exception.OpenedAt)
}

// live is an answer as approvals keep it. A supplier that does not answer has said nothing:
// one that is gone must not hold up a decision for ever.
func (d *desk) live(answer advance.Answer, err error, contradicts func(advance.Answer) bool) (*approval.Live, error) {
	now := d.o.DB.Now()
	switch {
	case errors.Is(err, advance.ErrCannotAsk):
		return &approval.Live{At: now}, nil
	case errors.Is(err, call.ErrDown):
		return &approval.Live{Answer: string(supplier.AnswerUnknown), At: now}, nil
	case errors.Is(err, order.ErrNotFound):
		return nil, act.ErrNotFound
	case err != nil:
		return nil, err
	}
	l := &approval.Live{Answer: call.StatusOf(answer.Answer), Call: answer.Call, At: now}
	l.Contradicts = l.Verified() && contradicts(answer)
	return l, nil
}

// saysUnpaid contradicts that an order is paid.
func saysUnpaid(x advance.Answer) bool { return x.State != supplier.AnswerPaid || x.Refunded }

// saysMoney contradicts that an order is given up: money is there, or may come.
func saysMoney(x advance.Answer) bool {
	return x.State == supplier.AnswerPaid && !x.Refunded || x.State == supplier.AnswerPaying
}

// saysRefunded contradicts that a message's money is taken: it went back, or the supplier
// names another sum for it by now.
func saysRefunded(m *payment.Message) func(advance.Answer) bool {
	return func(x advance.Answer) bool {
		return x.Refunded || x.State == supplier.AnswerPaid && x.Says.TradeNo == m.Content.TradeNo &&
			(x.Says.Amount != m.Content.Amount || x.Says.Currency != m.Content.Currency)
	}
}
