package orderquery

import (
	"cmp"
	"context"
	"time"

	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// push queries an order, and closes it if it is due to be closed. After an error r still holds
// what the calls returned.
func (a *Worker) push(ctx context.Context, r *result) error {
	now := a.o.DB.Now()
	r.next, r.stuck = a.o.Steps.Next(r.Order, now)
	s, queryable := a.supplierOf(r.job)
	r.at = s
	switch {
	case r.mayBePaidAgain():
		r.next, r.stuck = max(r.ExpiresAt, now), false
		return nil
	case !queryable: // its supplier changed since the order was found due
		r.next, r.stuck = max(r.ExpiresAt+a.o.Grace.Microseconds(), now), false
		return nil
	}
	ref := r.ref()
	if err := a.query(ctx, r, ref); err != nil {
		return err
	}
	if r.Status == order.Closing { // the age of a repeated start counts from the last repetition
		at, err := suppliercall.Started(ctx, a.o.DB.Read, r.ID, ref.Reference)
		if err != nil {
			return err
		}
		if at != 0 {
			ref.StartedAt = time.UnixMicro(at)
		}
	}
	switch r.answer.State {
	case supplier.AnswerNotFound:
		if r.Status != order.Closing {
			return nil
		}
		if believed, err := a.neverWas(ctx, r, ref); err != nil || !believed {
			return err
		}
		return a.close(ctx, r, ref, true)
	case supplier.AnswerPaying:
		if r.Status == order.Closing {
			return a.close(ctx, r, ref, false)
		}
	}
	return nil
}

// mayBePaidAgain reports whether all payments of an open order have failed: nothing is to be
// queried until the next one.
func (j *job) mayBePaidAgain() bool {
	return j.Status == order.Paying && j.open() == nil && len(j.attempts) > 0
}

// supplierOf returns the supplier of an order, and whether it is to be queried about it.
func (a *Worker) supplierOf(j *job) (s supplier.Entry, queryable bool) {
	s, ok := a.o.Settings.Current().Suppliers.ByID(j.at())
	return s, ok && s.Can().Querier != nil && !j.mayBePaidAgain()
}

// queryOf returns the query about an order.
func queryOf(j *job, s supplier.Entry, ref supplier.Ref) suppliercall.Call {
	return suppliercall.Call{To: s, Op: suppliercall.Query, OrderID: j.ID, OrderNo: j.OrderNo, Reference: ref.Reference}
}

// ref returns the payment to query: the open attempt, else the newest one, else one that the
// merchant may have started itself.
func (j *job) ref() supplier.Ref {
	at := j.open()
	if at == nil && len(j.attempts) > 0 {
		at = j.attempts[0]
	}
	if at == nil {
		return supplier.Ref{Reference: j.OrderNo, Amount: j.Amount, Currency: j.Currency, StartedAt: time.UnixMicro(j.CreatedAt)}
	}
	return supplier.Ref{
		Reference: at.SupplierRef, ExternalID: at.ExternalID, Amount: j.Amount, Currency: j.Currency,
		StartedAt: time.UnixMicro(at.CreatedAt),
	}
}

// query makes one query. An answer that says something becomes r.message.
func (a *Worker) query(ctx context.Context, r *result, ref supplier.Ref) error {
	x := queryOf(r.job, r.at, ref)
	x.Begun = r.take()
	answer, done, err := a.call(ctx, r, x, r.at.Can().Query, ref)
	if err != nil {
		return err
	}
	r.answer = answer
	r.message = message(r.at, ref, answer, done.ID)
	if r.message == nil && (answer.State == supplier.AnswerPaid || answer.State == supplier.AnswerFailed ||
		answer.State == supplier.AnswerClosed) {
		r.answer.State = supplier.AnswerUnknown
	}
	return nil
}

// call makes one call.
func (a *Worker) call(ctx context.Context, r *result, x suppliercall.Call, do func(context.Context, supplier.Ref) (supplier.Answer, error),
	ref supplier.Ref,
) (answer supplier.Answer, done *suppliercall.Done, err error) {
	done, err = a.o.Calls.Do(ctx, x,
		func(ctx context.Context) (_ suppliercall.Said, err error) {
			answer, err = do(ctx, ref)
			return suppliercall.Said{Exchange: answer.Exchange, Status: suppliercall.StatusOf(answer)}, err
		})
	if err != nil {
		return supplier.Answer{}, nil, err
	}
	if done.Status == string(supplier.AnswerUnknown) { // also if the adapter failed
		answer.State = supplier.AnswerUnknown
	}
	r.calls = append(r.calls, done)
	return answer, done, nil
}

// message turns an answer into a message for payment.Confirm; nil = it says nothing usable.
func message(s supplier.Entry, ref supplier.Ref, answer supplier.Answer, callID int64) *payment.Message {
	c := answer.Says
	switch {
	case answer.State == supplier.AnswerPaid:
		if c.Amount <= 0 || c.Currency == "" {
			return nil
		}
		c.Status = supplier.Paid
	case answer.State == supplier.AnswerFailed:
		c.Status, c.Final = supplier.Failed, true
	case answer.State == supplier.AnswerClosed:
		c.Status = supplier.Closed
	default:
		return nil
	}
	if c.OrderRef == "" {
		c.OrderRef = ref.Reference
	}
	if c.OrderRef != ref.Reference || c.Bound() != "" {
		return nil
	}
	return &payment.Message{Supplier: s, Content: c, Source: payment.ByCall(s, callID)}
}

// neverWas reports whether "not found" means that nothing was paid: the payment is old enough,
// and the supplier never knew its reference.
func (a *Worker) neverWas(ctx context.Context, r *result, ref supplier.Ref) (bool, error) {
	if a.o.DB.NowTime().Sub(ref.StartedAt) < r.at.QueryAfter {
		return false, nil
	}
	known, err := suppliercall.WasKnown(ctx, a.o.DB.Read, r.ID, ref.Reference)
	return !known, err
}

// close ends an unpaid order. never = its payment never started.
func (a *Worker) close(ctx context.Context, r *result, ref supplier.Ref, never bool) error {
	now, ended := a.o.DB.Now(), r.ExpiresAt+a.o.Grace.Microseconds()
	switch open := r.open(); {
	case open != nil && open.ByUs() && r.at.Can().Closer != nil:
		if at := ref.StartedAt.Add(r.at.Can().CloseAfter).UnixMicro(); now < at {
			r.next = at
			return nil
		}
		ref.ExternalID = cmp.Or(ref.ExternalID, r.answer.ExternalID)
		x := queryOf(r.job, r.at, ref)
		x.Op = suppliercall.Close
		answer, done, err := a.call(ctx, r, x, r.at.Can().Close, ref)
		// Any other answer is queried again before it is believed.
		if err == nil && (answer.State == supplier.AnswerClosed || never && answer.State == supplier.AnswerNotFound) {
			answer.State = supplier.AnswerClosed
			r.message = message(r.at, ref, answer, done.ID)
		}
		return err
	case never, now >= ended:
		said := supplier.Answer{State: supplier.AnswerClosed, Says: supplier.Callback{
			OrderRef:  ref.Reference,
			RawStatus: string(r.answer.State),
		}}
		r.message = message(r.at, ref, said, r.calls[len(r.calls)-1].ID)
	default:
		r.next = min(r.next, ended)
	}
	return nil
}
