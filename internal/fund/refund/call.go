package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/fund/booking"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/call"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Subject makes the supplier calls of refunds for compensations: queries and refund requests.
func (m *Machine) Subject() replaycall.Subject { return subject{m} }

type subject struct{ m *Machine }

// Ask queries the supplier about a refund. One that was never sent cannot have arrived.
func (s subject) Ask(ctx context.Context, x compensation.Item, _ replaycall.Payload) (compensation.Result, bool) {
	m := s.m
	r, at, result, ok := m.load(ctx, x)
	if !ok {
		return result, true
	}
	if r.FirstCallAt == nil {
		return compensation.Result{}, false
	}
	answer, done, err := m.call(ctx, r, at, call.RefundQuery)
	if err != nil {
		return m.uncalled(ctx, x, r, err), true
	}
	if answer.State != supplier.RefundNotFound {
		return m.settle(ctx, x, r, answer, done), true
	}
	may, early, absent := m.mayRepeat(r, at)
	switch {
	case early > 0:
		result = m.keep(ctx, done, compensation.Later(compensation.SupplierUnknown, "the supplier does not have it yet, and it is too early to rely on that").Again(early))
	case absent:
		answer.State = supplier.RefundFailed
		return m.settle(ctx, x, r, answer, done), true
	case !may:
		answer.State = supplier.RefundUnknown
		return m.settle(ctx, x, r, answer, done), true
	default:
		if result = m.keep(ctx, done, compensation.Result{}); result.Class == "" {
			return result, false
		}
	}
	return result, true
}

// MayRepeat reports whether the refund may be sent now, for the first time or again.
func (s subject) MayRepeat(ctx context.Context, x compensation.Item, _ replaycall.Payload) (bool, error) {
	r, at, _, ok := s.m.load(ctx, x)
	if !ok {
		return false, nil
	}
	may, early, _ := s.m.mayRepeat(r, at)
	return may && (r.FirstCallAt == nil || early <= 0), nil
}

// Call sends the refund to the supplier, always under the same number and with the same content.
// Before the call it commits that the refund may have been sent.
func (s subject) Call(ctx context.Context, x compensation.Item, _ replaycall.Payload) compensation.Result {
	m := s.m
	r, at, result, ok := m.load(ctx, x)
	if !ok {
		return result
	}
	if m.o.Calls.Down(at.ID) { // nothing is sent, so the refund is not marked as submitted
		return m.uncalled(ctx, x, r, call.ErrDown)
	}
	r, err := m.submit(ctx, r.ID)
	if err != nil {
		return compensation.Failed(err)
	}
	failpoint.Hit("refund_submitted")
	answer, done, err := m.call(ctx, r, at, call.Refund)
	if err != nil {
		return m.uncalled(ctx, x, r, err)
	}
	failpoint.Hit("refund_called")
	return m.settle(ctx, x, r, answer, done)
}

// load finds an item's refund and its supplier; false = nothing is to be done, for the reason in
// the result.
func (m *Machine) load(ctx context.Context, x compensation.Item) (*Refund, supplier.Entry, compensation.Result, bool) {
	r, err := byID(ctx, m.o.DB, x.SubjectID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, supplier.Entry{}, compensation.Died(compensation.Payload, err.Error()), false
	case err != nil:
		return nil, supplier.Entry{}, compensation.Failed(err), false
	// A refund that succeeded is queried again only if the supplier reports a change.
	case !Moves.Of(r.Status).Open && (r.Status != Succeeded || x.FromVersion == 0):
		return nil, supplier.Entry{}, compensation.WasOver("the refund is " + string(r.Status)), false
	case r.Status == Requested:
		return nil, supplier.Entry{}, compensation.WasOver("the refund is not approved"), false
	}
	at, ok := m.o.Settings.Current().Suppliers.ByID(r.SupplierID)
	if !ok || at.Can().Refunder == nil {
		d, _ := booking.WaitAfter(x.Attempts)
		return nil, at, compensation.Later(compensation.NotAskable, "its supplier cannot make refunds: check the supplier's settings").Again(d), false
	}
	return r, at, compensation.Result{}, true
}

// submit records, before the call, that the refund may reach the supplier from now on.
func (m *Machine) submit(ctx context.Context, id int64) (r *Refund, err error) {
	err = m.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var o *order.Order
		if o, r, err = m.lock(ctx, tx, id); err != nil {
			return err
		}
		now := m.o.DB.Now()
		r.LastCallAt = &now
		if r.Status != Approved {
			if !Moves.Of(r.Status).Open {
				return db.ErrStale
			}
			_, err = tx.NewRaw("UPDATE refunds SET last_call_at = ? WHERE id = ? AND version = ?", now, r.ID, r.Version).Exec(ctx)
			return err
		}
		r.FirstCallAt = &now
		x := m.begin(tx)
		if err := x.move(o, change{r: r, to: Submitted, actor: "backstop"}); err != nil {
			return err
		}
		return x.send(ctx)
	})
	return r, err
}

// call makes one call about a refund.
func (m *Machine) call(ctx context.Context, r *Refund, at supplier.Entry, op call.Op) (answer supplier.RefundAnswer, done *call.Done, err error) {
	can := at.Can()
	ask := can.RefundQuery
	if op == call.Refund {
		ask = can.Refund
	}
	what := supplier.Refund{
		No: r.RefundNo, SupplierNo: r.SupplierRefundNo, Reference: r.SupplierRef, TradeNo: r.TradeNo, Amount: r.Amount, Total: r.TradeAmount,
		Currency: r.Currency, Reason: r.Reason,
	}
	if m.o.CallbackURL != nil {
		what.NotifyURL = m.o.CallbackURL(at.Code)
	}
	done, err = m.o.Calls.Do(ctx, call.Call{To: at, Op: op, OrderID: r.OrderID, OrderNo: r.OrderNo, Reference: r.RefundNo, Key: r.RefundNo},
		func(ctx context.Context) (call.Said, error) {
			answer, err = ask(ctx, what)
			return call.Said{Exchange: answer.Exchange, Status: string(answer.State)}, err
		})
	if err == nil && answer.State == "" { // a failure of the adapter
		answer = supplier.RefundAnswer{State: supplier.RefundUnknown}
	}
	return answer, done, err
}

// uncalled returns the result of a call that was not made.
func (m *Machine) uncalled(ctx context.Context, x compensation.Item, r *Refund, err error) compensation.Result {
	if field := (*supplier.FieldError)(nil); errors.As(err, &field) {
		// The supplier's protocol cannot express it: nothing was or will be sent.
		return m.settle(ctx, x, r, supplier.RefundAnswer{State: supplier.RefundFailed, Word: field.Error()}, nil)
	}
	d, _ := booking.WaitAfter(x.Attempts)
	if errors.Is(err, call.ErrDown) {
		return compensation.Later(compensation.SupplierTimeout, err.Error()).Again(min(d, time.Minute))
	}
	return compensation.Later(compensation.Database, db.ErrorText(err)).Again(d)
}

// keep stores a call that changes nothing about the refund.
func (m *Machine) keep(ctx context.Context, done *call.Done, result compensation.Result) compensation.Result {
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return compensation.Failed(err)
	}
	return result.WithCall(done.ID)
}

// settle applies an answer to a refund and stores the finished call in the same transaction.
// done is nil if no call was made.
func (m *Machine) settle(ctx context.Context, item compensation.Item, r *Refund, answer supplier.RefundAnswer, done *call.Done) (result compensation.Result) {
	var committed func()
	err := m.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		committed = nil
		o, r, err := m.lock(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		x := m.begin(tx)
		if result, err = x.decide(o, r, item, answer, done); err != nil {
			return err
		}
		if err = x.send(ctx); err != nil {
			return err
		}
		if done != nil {
			committed, err = m.o.Calls.End(ctx, tx, done)
		}
		failpoint.Hit("refund_settling")
		return err
	})
	if err != nil {
		return compensation.Failed(err)
	}
	if committed != nil {
		committed()
		result = result.WithCall(done.ID)
	}
	failpoint.Hit("refund_settled")
	return result
}

// decide adds the changes that an answer causes to a locked refund.
func (x *write) decide(o *order.Order, r *Refund, item compensation.Item, answer supplier.RefundAnswer, done *call.Done) (compensation.Result, error) {
	c := change{r: r, actor: "supplier:" + x.m.SupplierName(r.SupplierID), detail: answer.Word}
	cause := compensation.SupplierUnknown
	if done != nil {
		c.kind, c.source, cause = SourceCall, done.ID, booking.CauseOf(done.Class)
	}
	again, last := booking.WaitAfter(item.Attempts)
	later := func(text string, d time.Duration) (compensation.Result, error) {
		return compensation.Later(cause, text).Again(d), nil
	}
	to := func(all ...Status) (compensation.Result, error) {
		for _, s := range all {
			c.to = s
			if err := x.move(o, c); err != nil {
				return compensation.Result{}, err
			}
		}
		return compensation.Succeeded("the refund is " + string(r.Status)), nil
	}
	if r.SupplierRefundNo == "" {
		r.SupplierRefundNo = answer.SupplierNo
	}
	now := x.m.o.DB.Now()
	switch {
	case r.Status == Succeeded: // queried again because the supplier reported a change
		if answer.State == supplier.RefundReturned || answer.State == supplier.RefundFailed {
			x.stuck(r, "returned", answer.Word)
			return to(Returned)
		}
		return compensation.WasOver("the refund is " + string(r.Status) + ", and the supplier says " + string(answer.State)), nil
	case !Moves.Of(r.Status).Open:
		return compensation.WasOver("the refund is " + string(r.Status)), nil
	}
	switch answer.State {
	case supplier.RefundSucceeded:
		return to(Succeeded)
	case supplier.RefundReturned:
		x.stuck(r, "returned", answer.Word)
		return to(Succeeded, Returned)
	case supplier.RefundFailed:
		return to(Failed)
	case supplier.RefundShort:
		if r.FirstCallAt != nil && now-*r.FirstCallAt >= booking.ShortFor.Microseconds() {
			return to(Failed)
		}
		x.stuck(r, "short_of_funds", answer.Word)
		return later("the supplier says that our account has insufficient funds", booking.ShortWait)
	case supplier.RefundProcessing:
		if last {
			x.stuck(r, "processing", answer.Word)
		}
		return later("the supplier is processing it", again)
	}
	if r.Status == Submitted {
		if _, err := to(Unknown); err != nil {
			return compensation.Result{}, err
		}
	}
	if answer.State == supplier.RefundAbnormal {
		x.stuck(r, "abnormal", answer.Word)
		return later("the buyer's account cannot receive it: finish it in the supplier's back office", booking.Daily)
	}
	if last {
		x.stuck(r, "unknown", answer.Word)
	}
	text := answer.Reason.Error()
	if text == "" {
		text = fmt.Sprintf("the supplier gave no clear answer (%s)", answer.State)
	}
	return later(text, again)
}

// stuck opens an exception for a refund that needs a person; its money stays held.
func (x *write) stuck(r *Refund, why, word string) {
	exception.Open(x.tx, x.w, x.m.o.DB, []*exception.Item{{
		Kind: exception.RefundFailed, SupplierID: r.SupplierID, MerchantID: r.MerchantID, OrderID: r.OrderID, OrderNo: r.OrderNo, Subject: r.RefundNo,
		Amount: r.Amount, Currency: r.Currency,
		Detail: exception.Detail(map[string]any{"refund_no": r.RefundNo, "status": why, "word": word, "trade_no": r.TradeNo, "supplier": x.m.SupplierName(r.SupplierID)}),
	}})
}
