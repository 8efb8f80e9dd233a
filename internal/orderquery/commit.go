package orderquery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/work"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// commit confirms the answers, and writes when the other orders are queried next and how all
// calls ended.
func (a *Worker) commit(ctx context.Context, tx db.Tx, all []*result) (func(), error) {
	ids, made := make([]int64, len(all)), []*suppliercall.Done{}
	for i, r := range all {
		ids[i] = r.ID
		made = append(made, r.calls...)
	}
	orders, err := order.ByIDs(ctx, tx, a.o.DB, ids) // all at once, in the order in which callbacks lock them
	if err != nil {
		return nil, err
	}
	// A result whose commit was not confirmed comes again.
	stored, err := suppliercall.Stored(ctx, tx, made)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(r *result) bool { return len(r.calls) > 0 && stored[r.calls[0].ID] })
	var messages []*payment.Message
	var calls []*suppliercall.Done
	var stuck []*exception.Item
	var at []*result
	w := tx.Writes()
	seen := map[int64]bool{}
	for _, r := range all {
		calls = append(calls, r.calls...)
		// A second result for one order came after its lease: the next attempt has newer data.
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
		queried := o.QueriedAt
		if len(r.calls) > 0 {
			queried = &r.calls[len(r.calls)-1].StartedAt
		}
		next := o.NextAt
		if r.next != 0 {
			next = &r.next
		}
		w.Add(tx.NewRaw(
			"UPDATE orders SET queried_at = ?, lease_owner = NULL, next_at = CASE WHEN version = ? AND next_at = ? THEN ? ELSE next_at END WHERE id = ?",
			queried, r.Version, r.lease, next, r.ID))
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

// firstStuck handles orders that are stuck for the first time. From now on they are queried
// daily, and are found stuck again each time.
func (a *Worker) firstStuck(ctx context.Context, tx db.Tx, w *db.Writes, stuck []*result) error {
	if len(stuck) == 0 || a.o.Stuck == nil {
		return nil
	}
	nos := make([]string, len(stuck))
	for i, r := range stuck {
		nos[i] = r.OrderNo
	}
	var before []string
	if err := tx.NewRaw("SELECT order_no FROM exceptions WHERE order_no IN (?) AND kind = ?", bun.List(nos),
		exception.StuckPaying).Scan(ctx, &before); err != nil {
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

// stuckOf returns the exception to open for a stuck order.
func stuckOf(r *result) *exception.Item {
	return &exception.Item{
		Kind: exception.StuckPaying, SupplierID: r.at.ID, MerchantID: r.MerchantID, OrderID: r.ID, OrderNo: r.OrderNo, Subject: r.OrderNo,
		Amount: r.Amount, Currency: r.Currency, Detail: exception.Detail(map[string]any{
			"supplier": r.at.Code, "status": r.Status, "tries": r.QueryTries, "answer": r.answer.State,
		}),
	}
}

// ahead is how far ahead a due order is kept in memory; later ones are read from their rows.
const ahead = time.Minute

// written keeps an order in memory if it is due again soon.
func (a *Worker) written(r *result) {
	if r.next != 0 && r.next-a.o.DB.Now() < ahead.Microseconds() {
		a.work.Offer(work.Job{ID: r.ID, Lane: r.job.at(), At: r.next})
	}
}

// Errors of Ask, besides suppliercall.ErrDown and order.ErrNotFound.
var (
	// ErrCannotQuery means that this supplier has no payment query.
	ErrCannotQuery = errors.New("this supplier cannot be queried about payments")
	// ErrOver is returned by AskOpen only: the order has ended.
	ErrOver = errors.New("the order is over")
)

// Answer is a supplier's answer to a query by an operator.
type Answer struct {
	supplier.Answer
	Took  time.Duration
	Order *order.Order // as confirmed; nil = no order
	Call  int64        // id in supplier_calls
}

// CanQuery reports why an order cannot be queried now: ErrCannotQuery, suppliercall.ErrDown, or nil.
func (a *Worker) CanQuery(ctx context.Context, orderNo string) error {
	j, err := a.load(ctx, orderNo)
	if err != nil {
		return err
	}
	return a.queryable(j)
}

func (a *Worker) queryable(j *job) error { return a.queryableAt(j.at()) }

func (a *Worker) queryableAt(supplierID int64) error {
	s, ok := a.o.Settings.Current().Suppliers.ByID(supplierID)
	switch {
	case !ok || s.Can().Querier == nil:
		return ErrCannotQuery
	case a.o.Calls.Down(s.ID):
		return suppliercall.ErrDown
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

// Query queries an order now, whatever its status, and confirms the answer. It does not count as
// a step. Errors: order.ErrNotFound, ErrCannotQuery, and suppliercall.ErrDown if the supplier did not
// answer; in that case nothing has changed.
func (a *Worker) Query(ctx context.Context, orderNo string) (Answer, error) {
	j, err := a.load(ctx, orderNo)
	if err != nil {
		return Answer{}, err
	}
	return a.queryNow(ctx, j, j.at(), j.settledRef())
}

// QueryReference is Query for a payment that may belong to no order, by its reference at the
// supplier. orderNo is the order to which the call is attributed; "" = none.
func (a *Worker) QueryReference(ctx context.Context, supplierID int64, orderNo string, ref supplier.Ref) (Answer, error) {
	j := &job{Order: new(order.Order), lease: -1}
	if orderNo != "" {
		var err error
		if j, err = a.load(ctx, orderNo); err != nil {
			return Answer{}, err
		}
	}
	return a.queryNow(ctx, j, supplierID, ref)
}

func (a *Worker) queryNow(ctx context.Context, j *job, supplierID int64, ref supplier.Ref) (Answer, error) {
	if err := a.queryableAt(supplierID); err != nil {
		return Answer{}, err
	}
	s, _ := a.o.Settings.Current().Suppliers.ByID(supplierID)
	r := &result{job: j, at: s}
	if err := a.query(ctx, r, ref); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = suppliercall.ErrDown
		}
		return Answer{}, err
	}
	done := r.calls[0]
	switch done.Class {
	case supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS:
		return Answer{}, errors.Join(suppliercall.ErrDown, a.o.Calls.Keep(ctx, done))
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

// settledRef is ref for an order that may have ended: the reference that settled it.
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

// QueryOpen is Query by order id, for open orders only.
func (a *Worker) QueryOpen(ctx context.Context, orderID int64) (Answer, error) {
	o, err := order.ByID(ctx, a.o.DB.Read, orderID)
	if err != nil {
		return Answer{}, err
	}
	if !o.Status.Open() {
		return Answer{}, fmt.Errorf("%w: it is %s", ErrOver, o.Status)
	}
	return a.Query(ctx, o.OrderNo)
}

// CallText returns the call's id as displayed.
func (x Answer) CallText() string { return strconv.FormatInt(x.Call, 10) }
