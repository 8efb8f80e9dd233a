package advance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/work"
	"backstop/internal/call"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// commit confirms what the answers say, and writes when the other orders are asked about
// again, with the ends of all calls.
func (a *Worker) commit(ctx context.Context, tx db.Tx, all []*result) (func(), error) {
	ids := make([]int64, len(all))
	for i, r := range all {
		ids[i] = r.ID
	}
	orders, err := order.ByIDs(ctx, tx, a.o.DB, ids) // all at once: what callbacks lock, they lock in this order, too
	if err != nil {
		return nil, err
	}
	var messages []*payment.Message
	var calls []*call.Done
	var stuck []*exception.Item
	var at []*result
	w := tx.Writes()
	seen := map[int64]bool{}
	for _, r := range all {
		calls = append(calls, r.calls...)
		// A second result of one order came after its lease: the next try knows more.
		if r.message != nil && !seen[r.ID] {
			messages = append(messages, r.message)
		}
		seen[r.ID] = true
	}
	outs, err := a.o.Payments.Confirm(ctx, tx, messages)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		o := orders[r.ID]
		if o == nil {
			continue
		}
		asked := o.AskedAt
		if len(r.calls) > 0 {
			asked = &r.calls[len(r.calls)-1].StartedAt
		}
		next := o.NextAt
		if r.next != 0 {
			next = &r.next
		}
		w.Add(tx.NewRaw("UPDATE orders SET asked_at = ?, lease_owner = NULL, next_at = CASE WHEN version = ? AND next_at = ? THEN ? ELSE next_at END WHERE id = ?",
			asked, r.Version, r.lease, next, r.ID))
		if r.stuck && o.Version == r.Version && o.Status.Open() && !moves(messages, outs, r.message) {
			stuck, at = append(stuck, stuckOf(r)), append(at, r)
		}
	}
	if err := a.firstStuck(ctx, tx, w, at); err != nil {
		return nil, err
	}
	exception.Open(tx, w, a.o.DB, stuck)
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write when orders are asked about: %w", err)
	}
	committed, err := a.o.Calls.End(ctx, tx, calls...)
	if err != nil {
		return nil, err
	}
	return func() {
		committed()
		a.o.Payments.Confirmed(messages, outs)
	}, nil
}

// firstStuck has something done about the orders that were never stuck before: they are asked
// about daily from now on, and each time is stuck again.
func (a *Worker) firstStuck(ctx context.Context, tx db.Tx, w *db.Writes, stuck []*result) error {
	if len(stuck) == 0 || a.o.Stuck == nil {
		return nil
	}
	nos := make([]string, len(stuck))
	for i, r := range stuck {
		nos[i] = r.OrderNo
	}
	var before []string
	if err := tx.NewRaw("SELECT order_no FROM exceptions WHERE order_no IN (?) AND kind = ?", bun.List(nos), exception.StuckPaying).Scan(ctx, &before); err != nil {
		return fmt.Errorf("read which orders were stuck before: %w", err)
	}
	for _, r := range stuck {
		if !slices.Contains(before, r.OrderNo) {
			a.o.Stuck(w, r.Order, r.at.ID)
		}
	}
	return nil
}

// moves reports whether a message has moved its order.
func moves(messages []*payment.Message, outs []payment.Outcome, m *payment.Message) bool {
	i := slices.Index(messages, m)
	return m != nil && i >= 0 && outs[i].Moved()
}

// stuckOf is what a person must look at.
func stuckOf(r *result) *exception.Item {
	return &exception.Item{
		Kind: exception.StuckPaying, SupplierID: r.at.ID, MerchantID: r.MerchantID, OrderID: r.ID, OrderNo: r.OrderNo, Subject: r.OrderNo,
		Amount: r.Amount, Currency: r.Currency, Detail: exception.Detail(map[string]any{
			"supplier": r.at.Code, "status": r.Status, "tries": r.QueryTries, "answer": r.answer.State,
		}),
	}
}

// ahead is how far ahead an order waits in memory; the others are found in their rows.
const ahead = time.Minute

// written keeps an order that is due again soon.
func (a *Worker) written(r *result) {
	if r.next != 0 && r.next-a.o.DB.Now() < ahead.Microseconds() {
		a.work.Offer(work.Job{ID: r.ID, Lane: r.job.at(), At: r.next})
	}
}

// Errors of Ask, beside call.ErrDown and order.ErrNotFound.
var (
	// ErrCannotAsk: the supplier cannot be asked about payments.
	ErrCannotAsk = errors.New("this supplier cannot be asked about payments")
	// ErrOver is of AskOpen alone: there is nothing left to ask about.
	ErrOver = errors.New("the order is over")
)

// Answer is what a supplier said to a person who asked.
type Answer struct {
	supplier.Answer
	Took  time.Duration
	Order *order.Order // after it was confirmed; nil = of none
	Call  int64        // of supplier_calls
}

// CanAsk reports why an order cannot be asked about now: ErrCannotAsk, call.ErrDown, or nil.
func (a *Worker) CanAsk(ctx context.Context, orderNo string) error {
	j, err := a.load(ctx, orderNo)
	if err != nil {
		return err
	}
	return a.askable(j)
}

func (a *Worker) askable(j *job) error { return a.askableAt(j.at()) }

func (a *Worker) askableAt(supplierID int64) error {
	s, ok := a.o.Settings.Current().Suppliers.ByID(supplierID)
	switch {
	case !ok || s.Can().Querier == nil:
		return ErrCannotAsk
	case a.o.Calls.Down(s.ID):
		return call.ErrDown
	}
	return nil
}

func (a *Worker) load(ctx context.Context, orderNo string) (*job, error) {
	o, err := order.ByNo(ctx, a.o.DB.Read, orderNo)
	if err != nil {
		return nil, err
	}
	attempts, err := payment.AttemptsOf(ctx, a.o.DB.Read, []int64{o.ID})
	return &job{Order: o, attempts: attempts[o.ID], lease: -1}, err
}

// Ask asks about an order now, whatever its status, and confirms the answer. It counts for
// no step. Errors: order.ErrNotFound, ErrCannotAsk, and call.ErrDown where the supplier did
// not answer: then nothing has changed.
func (a *Worker) Ask(ctx context.Context, orderNo string) (Answer, error) {
	j, err := a.load(ctx, orderNo)
	if err != nil {
		return Answer{}, err
	}
	return a.askNow(ctx, j, j.at(), j.settledRef())
}

// AskReference is Ask for a payment that may be of no order, by its reference at a supplier.
// orderNo is the order that the call belongs to; "" = none.
func (a *Worker) AskReference(ctx context.Context, supplierID int64, orderNo string, ref supplier.Ref) (Answer, error) {
	j := &job{Order: new(order.Order), lease: -1}
	if orderNo != "" {
		var err error
		if j, err = a.load(ctx, orderNo); err != nil {
			return Answer{}, err
		}
	}
	return a.askNow(ctx, j, supplierID, ref)
}

func (a *Worker) askNow(ctx context.Context, j *job, supplierID int64, ref supplier.Ref) (Answer, error) {
	if err := a.askableAt(supplierID); err != nil {
		return Answer{}, err
	}
	s, _ := a.o.Settings.Current().Suppliers.ByID(supplierID)
	r := &result{job: j, at: s}
	if err := a.query(ctx, r, ref); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = call.ErrDown
		}
		return Answer{}, err
	}
	done := r.calls[0]
	switch done.Class {
	case supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS:
		return Answer{}, errors.Join(call.ErrDown, a.o.Calls.Keep(ctx, done))
	}
	var committed func()
	err := a.o.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx db.Tx) (err error) {
		committed, err = a.commit(ctx, tx, []*result{r})
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	committed()
	out := Answer{Answer: r.answer, Took: time.Duration(*done.TookUS) * time.Microsecond, Call: done.ID}
	if j.OrderNo != "" {
		out.Order, err = order.ByNo(ctx, a.o.DB, j.OrderNo)
	}
	return out, err
}

// settledRef is ref for an order that may be over: of what settled it.
func (j *job) settledRef() supplier.Ref {
	ref := j.ref()
	if j.open() != nil {
		return ref
	}
	for _, at := range j.attempts {
		if at.Status == payment.Succeeded {
			ref.Reference, ref.ExternalID, ref.StartedAt = at.Reference(), at.ExternalID, time.UnixMicro(at.CreatedAt)
		}
	}
	return ref
}

// AskOpen is Ask for the id of an order, if it is open.
func (a *Worker) AskOpen(ctx context.Context, orderID int64) (Answer, error) {
	o, err := order.ByID(ctx, a.o.DB.Read, orderID)
	if err != nil {
		return Answer{}, err
	}
	if !o.Status.Open() {
		return Answer{}, fmt.Errorf("%w: it is %s", ErrOver, o.Status)
	}
	return a.Ask(ctx, o.OrderNo)
}

// CallText is a call's id as it is shown.
func (x Answer) CallText() string { return strconv.FormatInt(x.Call, 10) }
