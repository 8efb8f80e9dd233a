package decision

import (
	"context"
	"encoding/json"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

type amountParams struct {
	Amount int64 `json:"amount" kind:"money"`
	Late   bool  `json:"late"` // accept it although the order has ended
}

type attachParams struct {
	OrderNo string `json:"order_no" max:"64" required:"true" says:"there is no such order" says_zh:"没有这笔订单"`
}

// ofMoney returns the decisions about money that a supplier holds.
func (d *desk) ofMoney() []act.Kind {
	return []act.Kind{
		{
			Name: AcceptLate, Do: d.accept(func(any) payment.Waiver { return payment.Waiver{Late: true} }),
			Second: &act.Second{
				Query: d.queryMessage, Lock: d.lockOrder,
				Applies: undecided(func(s *Subject) bool {
					return s.Exception.Kind == exception.LatePayment && s.Order != nil &&
						(s.Order.Status == order.Closed || s.Order.Status == order.Failed)
				}),
			},
		},
		{
			Name: AcceptAmount, Params: act.ParamsOf[amountParams](),
			Do: d.accept(func(p any) payment.Waiver { return payment.Waiver{Amount: true, Late: p.(amountParams).Late} }),
			Second: &act.Second{
				Check: checkAmount, Query: d.queryMessage, Lock: d.lockOrder,
				Takes: func(s act.Subject, field string) bool {
					return field != "late" || !s.Value.(*Subject).Order.Status.Open()
				},
				Applies: undecided(func(s *Subject) bool {
					return s.Exception.Kind == exception.AmountMismatch && s.Order != nil && s.Order.Status != order.Paid
				}),
			},
		},
		{
			Name: Attach, Params: act.ParamsOf[attachParams](),
			Do: d.accept(func(p any) payment.Waiver { return payment.Waiver{OrderNo: p.(attachParams).OrderNo} }),
			Second: &act.Second{
				Check: checkAttach, Query: d.queryMessage, Lock: d.lockOrder,
				Applies: undecided(func(s *Subject) bool {
					return s.Exception.Kind == exception.UnknownOrder && s.Exception.Payload != "" && held(s)
				}),
			},
		},
		d.keepSurplus(), d.oweBack(),
	}
}

// undecided limits an action to exceptions without a decision or an open proposal.
func undecided(fits func(*Subject) bool) func(act.Subject) bool {
	return func(s act.Subject) bool {
		about := s.Value.(*Subject)
		return exception.Moves.Can(about.Exception.State, exception.Proposed) && fits(about)
	}
}

// held reports whether the exception's money is booked as held.
func held(s *Subject) bool { return s.Exception.HeldRef != "" }

// ofAmount reports whether ending the exception decides about an amount.
func ofAmount(s act.Subject, _ any) bool { return s.Value.(*Subject).Exception.OfMoney() }

// needsMoney returns the permission that the maker also needs if the exception involves money.
func needsMoney(s act.Subject, _ any) access.Permission {
	if ofAmount(s, nil) {
		return access.ProposeMoney
	}
	return ""
}

// doing is a Kind's Do.
type doing = func(context.Context, db.Tx, act.Input, []act.Subject) ([]act.Outcome, error)

// accept confirms the exception's message with the one check waived that two people decided on,
// and ends the exception.
func (d *desk) accept(waive func(params any) payment.Waiver) doing {
	return act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
		about, w := s.Value.(*Subject), waive(in.Params)
		m, err := d.message(ctx, tx, about)
		if err != nil {
			return act.Outcome{}, err
		}
		m.Source = payment.ByDecision(in.By.Name, in.Proposed.ID, w)
		if err := d.decide(ctx, tx, in, s, exception.Resolved, exception.Accepted, ""); err != nil {
			return act.Outcome{}, err
		}
		return d.confirm(ctx, tx, m)
	})
}

// lockOrder locks the order that a message would pay before its exception, as callbacks do.
func (d *desk) lockOrder(ctx context.Context, tx db.Tx, s act.Subject, params any) error {
	no := s.Value.(*Subject).orderNo()
	if p, ok := params.(attachParams); ok {
		no = p.OrderNo
	}
	_, err := order.ByNos(ctx, tx, d.o.DB, []string{no})
	return err
}

// decide ends the exception as approved.
func (d *desk) decide(ctx context.Context, tx db.Tx, in act.Input, s act.Subject, to exception.State, outcome exception.Outcome,
	reference string,
) error {
	return exception.Decide(ctx, tx, d.o.DB, s.Row, s.Version, to, in.Proposed.ID, string(outcome), reference)
}

// message returns an exception's message. For an older row whose message is past its retention,
// the row itself suffices if an order was found: the account had been checked by then.
func (d *desk) message(ctx context.Context, q bun.IDB, s *Subject) (*payment.Message, error) {
	x := s.Exception
	m, err := d.o.Payments.Stored(x)
	entry, ok := d.o.Settings.Current().Suppliers.ByID(x.SupplierID)
	if !errors.Is(err, payment.ErrNoMessage) || s.Order == nil || !ok {
		return m, err
	}
	attempts, err := payment.AttemptsOf(ctx, q, []int64{x.OrderID})
	if err != nil {
		return nil, err
	}
	var detail struct {
		TradeNo string `json:"trade_no"`
	}
	_ = json.Unmarshal(x.Detail, &detail) // empty if it cannot be parsed, as when its money was held
	c := supplier.Callback{
		OrderRef: x.OrderNo, TradeNo: detail.TradeNo, Amount: x.Amount, Currency: x.Currency, Status: supplier.Paid,
		Identity: entry.Adapter.Identity(),
	}
	for _, a := range attempts[x.OrderID] {
		if a.SupplierTradeNo == c.TradeNo && c.TradeNo != "" {
			c.OrderRef = a.Reference()
		}
	}
	return &payment.Message{Supplier: entry, Content: c}, nil
}

// checkAmount requires the amount of the message, and that a payment that came late is accepted
// as such by name.
func checkAmount(_ context.Context, _ bun.IDB, s act.Subject, p any) error {
	is, o := p.(amountParams), s.Value.(*Subject).Order
	switch late := !o.Status.Open(); {
	case is.Amount != s.Amount:
		return wrong("amount", tMessageAmount, s.TypedAmount(), s.Currency, s.Amount).Telling(tTypeAmount, s.TypedAmount(), s.Currency)
	case late && !is.Late:
		return wrong("late", tLate, o.Status).Telling(tTickLate)
	case is.Late && !late:
		return wrong("late", tNotLate, o.Status).Telling(tUntickLate)
	}
	return nil
}

// checkAttach requires an order that the message would have paid, had it named it.
func checkAttach(ctx context.Context, q bun.IDB, s act.Subject, p any) error {
	o, err := order.ByNo(ctx, q, p.(attachParams).OrderNo)
	switch {
	case errors.Is(err, order.ErrNotFound):
		return wrong("order_no", tNoOrder)
	case err != nil:
		return err
	case !o.Status.Open():
		return wrong("order_no", tOrderIs, o.Status).Telling(tOrderEnded)
	case o.Currency != s.Currency || o.Amount != s.Amount:
		return wrong("order_no", tOrderAbout, money.Format(o.Amount, o.Currency), o.Currency)
	}
	return nil
}

// keepSurplus moves held money to the merchant.
func (d *desk) keepSurplus() act.Kind {
	return act.Kind{
		Name: KeepSurplus,
		Second: &act.Second{
			Evidence: true,
			Applies:  undecided(func(s *Subject) bool { return held(s) && s.Exception.MerchantID != 0 }),
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			if err := d.decide(ctx, tx, in, s, exception.Resolved, exception.KeepSurplus, ""); err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{Details: map[string]any{"outcome": KeepSurplus}},
				d.o.Payments.SettleHeld(ctx, tx, s.Value.(*Subject).Exception, in.Proposed.ID, true)
		}),
	}
}

// oweBack returns held money to the buyer, by a refund of the payment that it came with.
func (d *desk) oweBack() act.Kind {
	return act.Kind{
		Name: OweBack,
		Second: &act.Second{
			Evidence: true,
			Applies:  undecided(func(s *Subject) bool { return held(s) && d.o.Refunds.CanOweBack(s.Exception.SupplierID) }),
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			about := s.Value.(*Subject)
			m, err := d.message(ctx, tx, about)
			if err != nil {
				return act.Outcome{}, err
			}
			if err := d.decide(ctx, tx, in, s, exception.Resolved, exception.OweBack, ""); err != nil {
				return act.Outcome{}, err
			}
			r, err := d.o.Refunds.OweBack(ctx, tx, refund.Held{
				Exception: about.Exception, Reference: m.Content.OrderRef, TradeNo: m.Content.TradeNo, ApprovalID: in.Proposed.ID,
				Actor: in.By.Name, Reason: in.Reason,
			})
			if err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{Details: map[string]any{"outcome": OweBack, "refund_no": r.RefundNo}}, nil
		}),
	}
}

// ignore keeps an exception closed when it is reported again.
func (d *desk) ignore() act.Kind {
	return act.Kind{
		Name: Ignore, Permission: access.IgnoreExceptions, ExtraPermission: needsMoney,
		Second: &act.Second{Needed: ofAmount, Applies: undecided(func(s *Subject) bool { return !held(s) })},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			return act.Outcome{}, d.decide(ctx, tx, in, s, exception.Ignored, "", "")
		}),
	}
}

// Outcomes of exceptions settled elsewhere.
const (
	Refunded = "refunded" // the buyer has the money back
	Kept     = "kept"     // the merchant keeps it
)

type elsewhereParams struct {
	Outcome   string `json:"outcome" choices:"refunded|kept" required:"true" says:"use refunded or kept" says_zh:"请选择已退款或归商户"`
	Reference string `json:"reference" max:"200" required:"true" says:"enter a reference of 1 to 200 characters that proves it, such as the supplier's refund number" says_zh:"请填 1 到 200 个字的凭证，例如渠道退款单号"`
}

// resolvedElsewhere ends an exception whose money was moved by other means; the held part
// leaves the account of held money.
func (d *desk) resolvedElsewhere() act.Kind {
	return act.Kind{
		Name: ResolvedElsewhere, Permission: access.IgnoreExceptions, ExtraPermission: needsMoney, Params: act.ParamsOf[elsewhereParams](),
		Second: &act.Second{
			Evidence: true, Needed: ofAmount, Applies: undecided(func(*Subject) bool { return true }),
			Check: func(_ context.Context, _ bun.IDB, s act.Subject, p any) error {
				if about := s.Value.(*Subject); p.(elsewhereParams).Outcome == Kept && held(about) && s.MerchantID == 0 {
					return wrong("outcome", tNoMerchant)
				}
				return nil
			},
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			x, p := s.Value.(*Subject).Exception, in.Params.(elsewhereParams)
			outcome := exception.RefundedElsewhere
			if p.Outcome == Kept {
				outcome = exception.AcceptedElsewhere
			}
			if err := d.decide(ctx, tx, in, s, exception.Resolved, outcome, p.Reference); err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{Details: map[string]any{"outcome": p.Outcome}}, d.o.Payments.SettleHeld(ctx, tx, x, in.Proposed.ID, p.Outcome == Kept)
		}),
	}
}
