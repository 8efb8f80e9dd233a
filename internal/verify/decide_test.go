package verify

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/stock"
)

// approved stores an approval that has taken effect and returns its id.
func (s *story) approved(action string) int64 {
	s.t.Helper()
	id := s.DB.NewID()
	s.exec("INSERT INTO approvals (id, action, object, object_id, version, amount, currency, params, reason, evidence, hash, maker, checker, second, state, made_at, expires_at, decided_at, done_at, tries)"+
		" VALUES (?, ?, 'exception', ?, 1, 0, '', '{}', '', '', '', 1, 2, TRUE, 'done', 1, 1, 1, 1, 1)", id, action, id)
	for _, step := range []string{"propose", "approve", "done"} {
		s.record(step, fmt.Sprintf("apr_%d", id))
	}
	return id
}

// last returns the newest exception of a kind.
func (s *story) last(kind string) *exception.Item {
	s.t.Helper()
	x := new(exception.Item)
	if err := s.DB.NewSelect().Model(x).Where("x.kind = ?", kind).OrderExpr("x.id DESC").Limit(1).Scan(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return x
}

// confirm confirms the stored message of an exception again, by an approval.
func (s *story) confirm(x *exception.Item, action string, w payment.Waiver) {
	s.t.Helper()
	m, err := s.Processor.Stored(x)
	if err != nil {
		s.t.Fatal(err)
	}
	id := s.approved(action)
	m.Source = payment.ByDecision("operator:li", id, w)
	s.end(x, id, exception.Accepted) // first, as the desk does: the payment ends what is open about it
	s.take(m, payment.Paid)
}

func (s *story) end(x *exception.Item, approval int64, outcome exception.Outcome) {
	s.t.Helper()
	if err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
		if outcome == exception.RefundedElsewhere {
			if err := s.Processor.SettleHeld(ctx, tx, x, approval, false); err != nil {
				return err
			}
		}
		return exception.Decide(ctx, tx, s.DB, x.ID, x.Version, exception.Resolved, approval, string(outcome), "R")
	}); err != nil {
		s.t.Fatal(err)
	}
}

// decide makes every decision about held money.
func (s *story) decide() {
	s.t.Helper()
	s.AddSKU(s.t, "cup", 3)
	cups := func(n int64) *order.Order {
		o, _, err := s.Processor.Create(s.t.Context(), s.M1, payment.CreateRequest{
			OutTradeNo: s.Out(), Amount: 1999, Currency: "CNY", Supplier: "sp-main", Items: []stock.Line{{SKU: "cup", Quantity: n}},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		return o
	}
	late := cups(3)
	s.cancel(late)
	holder := cups(2) // one is left
	s.take(s.Callback(late.OrderNo, "T-accepted", 1999), exception.LatePayment)
	s.confirm(s.last(exception.LatePayment), "accept_late", payment.Waiver{Late: true})
	s.cancel(holder)

	short := s.create(s.M1, 0)
	s.take(s.Callback(short.OrderNo, "T-short", 1900), exception.AmountMismatch)
	s.confirm(s.last(exception.AmountMismatch), "accept_amount", payment.Waiver{Amount: true})

	meant := s.create(s.M1, 0)
	s.take(s.Callback("another-order", "T-attached", 1999), exception.UnknownOrder)
	s.confirm(s.last(exception.UnknownOrder), "attach", payment.Waiver{OrderNo: meant.OrderNo})

	for tradeNo, outcome := range map[string]exception.Outcome{
		"T-back": exception.RefundedElsewhere, "T-keep": exception.KeepSurplus,
		"T-owe": exception.OweBack,
	} {
		s.take(s.Callback("order-of-"+tradeNo, tradeNo, 1999), exception.UnknownOrder)
		x := s.last(exception.UnknownOrder)
		s.end(x, s.approved("resolved_elsewhere"), outcome)
	}
}
