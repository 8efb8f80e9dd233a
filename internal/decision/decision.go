// Package decision implements the decisions about exceptions and orders: each is an act.Kind
// with a Second whose effect on order, money, stock and merchant is one transaction.
package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/exception"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Names of the decisions.
const (
	AcceptLate        = "accept_late"
	AcceptAmount      = "accept_amount"
	Attach            = "attach"
	KeepSurplus       = "keep_surplus"
	OweBack           = "owe_back"
	Ignore            = "ignore"
	ResolvedElsewhere = "resolved_elsewhere"
	ResolveRefund     = "refund.resolve"

	MarkPaid    = "mark_paid"
	ForceClosed = "force_closed"
	ForceFailed = "force_failed"

	Refund = "refund" // of a paid order
)

// Objects of decisions.
const (
	OfException = "exception"
	OfOrder     = "order"
)

// Querier queries suppliers; see orderquery.Worker.
type Querier interface {
	Query(ctx context.Context, orderNo string) (orderquery.Answer, error)
	QueryReference(ctx context.Context, supplierID int64, orderNo string, ref supplier.Ref) (orderquery.Answer, error)
}

// Options of the decisions.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Payments *payment.Processor
	Querier  Querier
	Refunds  *refund.Machine
}

type desk struct{ o Options }

// Kinds returns all decisions about exceptions and orders.
func Kinds(o Options) []act.Kind {
	d := &desk{o}
	all := append(d.ofMoney(), d.ignore(), d.resolvedElsewhere(), d.resolveRefund())
	for i := range all {
		all[i].Object, all[i].Load = OfException, act.ByID(LoadException)
		all[i].Second.Reserve, all[i].Second.Release = d.hold, d.free
	}
	orders := d.ofOrders()
	for i := range orders {
		orders[i].Object, orders[i].Load = OfOrder, act.ByID(LoadOrder)
	}
	all = append(all, orders...)
	for i := range all {
		k := &all[i]
		k.Permission, k.Second.Approve = cmp.Or(k.Permission, access.ProposeMoney), access.ApproveMoney
		if k.Second.Ended == nil {
			k.Second.Ended = func(s act.Subject) bool { return s.Effect == act.Final }
		}
		k.Second.Unverified = k.Second.Query != nil
	}
	return all
}

// All returns all decisions of two people. To add one, declare a Kind in the package that owns its
// effect and list it here.
func All(o Options, l *ledger.Ledger, payouts *payout.Machine, batches *batch.Batches, applies apply.Env) []act.Kind {
	return slices.Concat(Kinds(o), adjust.Kinds(o.DB, l), payouts.Decisions(),
		[]act.Kind{apply.Decision(applies), batches.Decision(), o.Refunds.Decision()})
}

// Subject is what a decision is about.
type Subject struct {
	Exception *exception.Item // nil = the decision is about the order
	Order     *order.Order    // nil = the exception has none
	Refund    *refund.Refund  // nil = the exception is about none
}

func (s *Subject) orderNo() string {
	if s.Order == nil {
		return ""
	}
	return s.Order.OrderNo
}

// LoadException finds an exception by id, with its order. Errors: act.ErrNotFound.
func LoadException(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return act.Subject{}, act.ErrNotFound
	}
	x, err := exception.Find(ctx, q, n)
	if errors.Is(err, exception.ErrNotFound) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, err
	}
	about := &Subject{Exception: x}
	s := act.Subject{
		Row: x.ID, ID: strconv.FormatInt(x.ID, 10), Version: x.Version, MerchantID: x.MerchantID, Amount: x.Amount, Currency: x.Currency,
		Value: about,
	}
	if !x.State.Open() {
		s.Effect = act.Final
	}
	if about.Refund, err = loadRefund(ctx, q, x); err != nil || x.OrderID == 0 {
		return s, err
	}
	if about.Order, err = order.ByID(ctx, q, x.OrderID); errors.Is(err, order.ErrNotFound) {
		return s, nil
	}
	s.OrderNo = about.orderNo()
	return s, err
}

// LoadOrder finds an order by number. Errors: act.ErrNotFound.
func LoadOrder(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
	o, err := order.ByNo(ctx, q, no)
	if errors.Is(err, order.ErrNotFound) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, err
	}
	s := act.Subject{
		Row: o.ID, ID: o.OrderNo, Version: o.Version, MerchantID: o.MerchantID, Amount: o.Amount, Currency: o.Currency,
		OrderNo: o.OrderNo, Value: &Subject{Order: o},
	}
	if !o.Status.Open() {
		s.Effect = act.Final
	}
	return s, nil
}

// hold marks the exception as proposed, so that nothing else ends it meanwhile.
func (d *desk) hold(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
	return exception.Hold(ctx, tx, d.o.DB, s.Row, s.Version)
}

// free reopens it if the proposal ended without effect.
func (d *desk) free(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
	return exception.Free(ctx, tx, d.o.DB, s.Row)
}

// wrong is about a parameter.
func wrong(field string, problem text.Text, args ...any) *act.FieldError {
	return invalid.Field("params."+field, problem, args...)
}

// What is said of invalid parameters. Programs type minor units and read states by their codes.
var (
	tOrderAmount   = text.Text{ZH: "订单金额是 %s %s：请填 %d", EN: "the order is about %s %s: enter %d"}
	tMessageAmount = text.Text{ZH: "渠道消息的金额是 %s %s：请填 %d", EN: "the message is about %s %s: enter %d"}
	tTypeAmount    = text.Text{ZH: "应为 %s %s：请按显示的金额原样输入", EN: "it is about %s %s: type the amount exactly as it is shown"}
	tLate          = text.Text{
		ZH: "订单状态为 %s：须注明接受关单后到账",
		EN: "the order is %s: set it to accept the payment although it came late",
	}
	tTickLate   = text.Text{ZH: "订单已结束：请勾选“订单已结束”", EN: "the order has ended: tick “The order has ended”"}
	tNotLate    = text.Text{ZH: "订单状态为 %s：这笔支付并未迟到", EN: "the order is %s: the payment is not late"}
	tUntickLate = text.Text{ZH: "订单尚未结束：请取消勾选", EN: "the order has not ended: clear this box"}
	tNoOrder    = text.Text{ZH: "没有这笔订单", EN: "there is no such order"}
	tOrderIs    = text.Text{ZH: "订单状态为 %s", EN: "the order is %s"}
	tOrderEnded = text.Text{ZH: "这笔订单已结束：请填未结束的订单", EN: "this order has ended: enter one that is open"}
	tOrderAbout = text.Text{ZH: "这笔订单的金额是 %s %s", EN: "the order is about %s %s"}
	tNoMerchant = text.Text{ZH: "这条异常没有商户，不能归商户", EN: "kept is not possible: the exception has no merchant"}
)

// confirm confirms the message as approved. Any outcome other than a payment rolls everything
// back: what was approved no longer matches what is stored.
func (d *desk) confirm(ctx context.Context, tx db.Tx, m *payment.Message) (act.Outcome, error) {
	messages := []*payment.Message{m}
	outs, err := d.o.Payments.Confirm(ctx, tx, messages)
	if err != nil {
		return act.Outcome{}, err
	}
	if outs[0].Name != payment.Paid {
		return act.Outcome{}, fmt.Errorf("%w: the payment would be %s", act.ErrChanged, outs[0].Name)
	}
	tx.OnEnd(func(err error) {
		if err == nil {
			d.o.Payments.Confirmed(messages, outs)
		}
	})
	return act.Outcome{
		Details: map[string]any{"order_no": outs[0].OrderNo, "status": string(order.Paid), "paid_amount": m.Content.Amount},
	}, nil
}
