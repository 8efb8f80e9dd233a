package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// Subject makes the supplier calls of refunds for compensations: queries and refund requests.
func (m *Machine) Subject() replaycall.Subject { return subject{m} }

type subject struct{ m *Machine }

// Query queries the supplier about a refund. One that was never sent cannot have arrived.
func (s subject) Query(ctx context.Context, x compensation.Item, _ replaycall.Payload) (compensation.Result, bool) {
	m := s.m
	r, at, result, ok := m.load(ctx, x)
	if !ok {
		return result, true
	}
	if r.FirstCallAt == nil {
		return compensation.Result{}, false
	}
	repeat := m.mayRepeat(r, at)
	answer, done, err := m.call(ctx, r, at, suppliercall.RefundQuery)
	if err != nil {
		return m.uncalled(ctx, x, r, err), true
	}
	as, early, again := repeat.queried(answer.State)
	switch {
	case early:
		return m.keep(ctx, done, compensation.Later(compensation.SupplierUnknown,
			"the supplier does not have it yet, and it is too early to rely on that").Again(repeat.early)), true
	case again:
		if result = m.keep(ctx, done, compensation.Result{}); result.Class == "" {
			return result, false
		}
		return result, true
	}
	answer.State = as
	return m.settle(ctx, x, r, repeat, answer, done), true
}

// MayRepeat reports whether the refund may be sent now, for the first time or again.
func (s subject) MayRepeat(ctx context.Context, x compensation.Item, _ replaycall.Payload) (bool, error) {
	r, at, _, ok := s.m.load(ctx, x)
	if !ok {
		return false, nil
	}
	repeat := s.m.mayRepeat(r, at)
	return repeat.may && (r.FirstCallAt == nil || repeat.early <= 0), nil
}

// Call sends the refund to the supplier, always under the same number and with the same content.
// Before the call it commits that the refund may have been sent.
func (s subject) Call(ctx context.Context, x compensation.Item, _ replaycall.Payload) compensation.Result {
	m := s.m
	r, at, result, ok := m.load(ctx, x)
	if !ok {
		return result
	}
	// Nothing is sent, so the refund is not marked as submitted.
	if err := m.o.Calls.Shadow(); err != nil {
		return m.uncalled(ctx, x, r, err)
	}
	if m.o.Calls.Down(at.ID) {
		return m.uncalled(ctx, x, r, suppliercall.ErrDown)
	}
	r, err := m.submit(ctx, r.ID, at)
	if err != nil {
		return compensation.Failed(err)
	}
	failpoint.Hit("refund_submitted")
	answer, done, err := m.call(ctx, r, at, suppliercall.Refund)
	if err != nil {
		return m.uncalled(ctx, x, r, err)
	}
	failpoint.Hit("refund_called")
	return m.settle(ctx, x, r, repeats{answered: r.LastCallAt}, answer, done)
}

// load finds an item's refund and its supplier; false = nothing is to be done, for the reason in
// the result.
func (m *Machine) load(ctx context.Context, x compensation.Item) (*Refund, supplier.Entry, compensation.Result, bool) {
	r, err := byID(ctx, m.DB, x.SubjectID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, supplier.Entry{}, compensation.DeadLetter(compensation.Payload, err.Error()), false
	case err != nil:
		return nil, supplier.Entry{}, compensation.Failed(err), false
	// A refund that succeeded is queried again only if the supplier reports a change.
	case !Moves.Of(r.Status).Open && (r.Status != Succeeded || x.FromVersion == 0):
		return nil, supplier.Entry{}, compensation.AlreadyDone("the refund is " + string(r.Status)), false
	case r.Status == Requested:
		return nil, supplier.Entry{}, compensation.AlreadyDone("the refund is not approved"), false
	}
	at, ok := m.Settings.Current().Suppliers.ByID(r.SupplierID)
	if !ok || at.Can().Refunder == nil {
		d, _ := m.waitFor(r, x)
		return nil, at, compensation.Later(compensation.NotQueryable,
			"its supplier cannot make refunds: check the supplier's settings").Again(d), false
	}
	return r, at, compensation.Result{}, true
}

// waitFor returns when to query a refund again; last = an operator must look at it.
func (m *Machine) waitFor(r *Refund, x compensation.Item) (d time.Duration, last bool) {
	calls := booking.Calls{First: r.FirstCallAt, Last: r.LastCallAt, Short: r.ShortAt}
	return compensation.WaitSince(calls.Age(x, Moves.Of(r.Status).Open, m.DB.Now()))
}

// submit records, before the call, that the refund may reach the supplier from now on.
func (m *Machine) submit(ctx context.Context, id int64, at supplier.Entry) (r *Refund, err error) {
	err = m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var o *order.Order
		if o, r, err = m.lock(ctx, tx, id); err != nil {
			return err
		}
		now := m.DB.Now()
		r.called(now)
		if r.Status != Approved {
			if !Moves.Of(r.Status).Open || !m.mayRepeat(r, at).may {
				return db.ErrStale
			}
			_, err = tx.NewRaw("UPDATE refunds SET last_call_at = ?, short_last = FALSE WHERE id = ? AND version = ?", now, r.ID, r.Version).Exec(ctx)
			return err
		}
		r.FirstCallAt = &now
		x := m.begin(tx)
		if err := x.do(o, r, booking.Cause{Actor: "backstop"}, Sent); err != nil {
			return err
		}
		return x.Send(ctx)
	})
	return r, err
}

// call makes one call about a refund.
func (m *Machine) call(ctx context.Context, r *Refund, at supplier.Entry, op suppliercall.Op) (answer supplier.RefundAnswer, done *suppliercall.Done,
	err error,
) {
	can := at.Can()
	call := can.RefundQuery
	if op == suppliercall.Refund {
		call = can.Refund
	}
	what := supplier.Refund{
		No: r.RefundNo, SupplierNo: r.SupplierRefundNo, Reference: r.SupplierRef, TradeNo: r.TradeNo, Amount: r.Amount,
		Total:    r.TradeAmount,
		Currency: r.Currency, Reason: r.Reason,
	}
	if m.o.CallbackURL != nil {
		what.NotifyURL = m.o.CallbackURL(at.Code)
	}
	done, err = m.o.Calls.Do(ctx, suppliercall.Call{To: at, Op: op, OrderID: r.OrderID, OrderNo: r.OrderNo, Reference: r.RefundNo, Key: r.RefundNo},
		func(ctx context.Context) (suppliercall.Said, error) {
			answer, err = call(ctx, what)
			return suppliercall.Said{Exchange: answer.Exchange, Status: string(answer.State)}, err
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
		return m.settle(ctx, x, r, repeats{}, supplier.RefundAnswer{State: supplier.RefundFailed, Word: field.Error()}, nil)
	}
	d, _ := m.waitFor(r, x)
	if errors.Is(err, suppliercall.ErrDown) || errors.Is(err, suppliercall.ErrShadow) {
		return compensation.Later(compensation.SupplierTimeout, err.Error()).Again(min(d, time.Minute))
	}
	return compensation.Later(compensation.Database, db.ErrorText(err)).Again(d)
}

// keep stores a call that changes nothing about the refund.
func (m *Machine) keep(ctx context.Context, done *suppliercall.Done, result compensation.Result) compensation.Result {
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return compensation.Failed(err)
	}
	return result.WithCall(done.ID)
}

// settle applies an answer to a refund and stores the finished call in the same transaction.
// repeat is what a conclusion was drawn from. done is nil if no call was made.
func (m *Machine) settle(ctx context.Context, item compensation.Item, r *Refund, repeat repeats, answer supplier.RefundAnswer,
	done *suppliercall.Done,
) (result compensation.Result) {
	var committed func()
	err := m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		committed = nil
		o, r, err := m.lock(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		x, answer := m.begin(tx), answer
		answer.State = repeat.upToDate(answer.State, r.LastCallAt)
		if result, err = x.decide(o, r, item, repeat, answer, done); err != nil {
			return err
		}
		if err = x.Send(ctx); err != nil {
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
func (x *write) decide(o *order.Order, r *Refund, item compensation.Item, repeat repeats, answer supplier.RefundAnswer,
	done *suppliercall.Done,
) (compensation.Result, error) {
	c := booking.Cause{Actor: "supplier:" + x.m.SupplierName(r.SupplierID), Detail: answer.Word}
	cause := compensation.SupplierUnknown
	if done != nil {
		c.SourceKind, c.SourceID, cause = booking.SourceCall, done.ID, booking.CauseOf(done.Class)
	}
	again, last := x.m.waitFor(r, item)
	later := func(text string, d time.Duration) (compensation.Result, error) {
		return compensation.Later(cause, text).Again(d), nil
	}
	if r.SupplierRefundNo == "" {
		r.SupplierRefundNo = answer.SupplierNo
	}
	x.accepted(r, answer.State)
	was, events := r.Status, heard(r.Status, answer.State)
	if err := x.do(o, r, c, events...); err != nil {
		return compensation.Result{}, err
	}
	if Moves.Of(was).Open && !Moves.Of(r.Status).Open {
		x.settled(r)
	}
	if r.Status == Returned && was != Returned {
		x.stuck(r, "returned", answer.Word)
	}
	switch {
	case len(events) > 0 && !Moves.Of(r.Status).Open:
		return compensation.Succeeded("the refund is " + string(r.Status)), nil
	case r.Status == Succeeded: // queried again because the supplier reported a change
		return compensation.AlreadyDone("the refund is " + string(r.Status) + ", and the supplier says " + string(answer.State)), nil
	case !Moves.Of(r.Status).Open:
		return compensation.AlreadyDone("the refund is " + string(r.Status)), nil
	}
	switch answer.State {
	case supplier.RefundShort:
		x.short(r, repeat, answer.Word)
		return later("the supplier says that our account has insufficient funds", booking.ShortWait)
	case supplier.RefundProcessing:
		if last {
			x.stuck(r, "processing", answer.Word)
		}
		return later("the supplier is processing it", again)
	case supplier.RefundAbnormal:
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

// accepted notes when the supplier first said that it has a refund.
func (x *write) accepted(r *Refund, said supplier.RefundState) {
	switch said {
	case supplier.RefundSucceeded, supplier.RefundProcessing, supplier.RefundAbnormal, supplier.RefundReturned:
	default:
		return
	}
	if r.AcceptedAt == nil && r.Unresolved() {
		now := x.m.DB.Now()
		r.AcceptedAt = &now
		x.W.Guard(x.Tx.NewRaw("UPDATE refunds SET accepted_at = ? WHERE id = ? AND version = ?", now, r.ID, r.Version), 1)
	}
}

// short notes since when our account at the supplier is short of funds, and reports it.
func (x *write) short(r *Refund, repeat repeats, word string) {
	repeat.short(r, x.m.DB.Now())
	x.W.Guard(x.Tx.NewRaw("UPDATE refunds SET short_at = ?, short_last = ? WHERE id = ? AND version = ?", r.ShortAt, r.ShortLast, r.ID, r.Version), 1)
	x.report(r, exception.SupplierShort, "short_of_funds", word)
}

// stuck opens an exception for a refund that needs a person; its money stays held.
func (x *write) stuck(r *Refund, why, word string) { x.report(r, exception.RefundFailed, why, word) }

func (x *write) report(r *Refund, kind, why, word string) {
	exception.Open(x.Tx, x.W, x.m.DB, []*exception.Item{{
		Kind: kind, SupplierID: r.SupplierID, MerchantID: r.MerchantID, OrderID: r.OrderID, OrderNo: r.OrderNo, Subject: r.RefundNo,
		Amount: r.Amount, Currency: r.Currency,
		Detail: exception.Detail(map[string]any{
			"refund_no": r.RefundNo, "status": why, "word": word, "trade_no": r.TradeNo,
			"supplier": x.m.SupplierName(r.SupplierID),
		}),
	}})
}

// settled resolves the exceptions that only waited for a refund's end.
func (x *write) settled(r *Refund) {
	for _, kind := range []string{exception.RefundFailed, exception.SupplierShort} {
		x.W.Add(exception.ResolveAt(x.Tx, x.m.DB, kind, r.SupplierID, r.RefundNo))
	}
}
