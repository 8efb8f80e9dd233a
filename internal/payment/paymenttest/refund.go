package paymenttest

import (
	"context"

	"backstop/internal/supplier"
)

// FakeRefund is the truth about a refund at a Fake.
type FakeRefund struct {
	State   supplier.RefundState
	Moved   int // how often money moved: 1 is the only good answer
	Calls   int // orders that arrived
	Queried int
}

// RefundFault is what a Fake does with a call about a refund.
type RefundFault string

// Faults of refunds; "" = it acts and says so.
const (
	RefundLost  RefundFault = "lost"  // it acts, and its answer is lost
	RefundDeaf  RefundFault = "deaf"  // the call never arrives
	RefundWrong RefundFault = "wrong" // it acts, and its answer is signed wrongly
	RefundLazy  RefundFault = "lazy"  // it takes the call, and decides later
	RefundNo    RefundFault = "no"    // a listed final word
	RefundShort RefundFault = "short" // our account there is short of funds
	RefundStuck RefundFault = "stuck" // it takes the call, and cannot pay
	RefundVague RefundFault = "vague" // it acts, and its answers say nothing, though it is healthy
	RefundOnce  RefundFault = "once"  // it forgets numbers: each call pays
)

// OnRefund sets what becomes of the calls about refunds, both orders and questions.
func (f *Fake) OnRefund(do func(supplier.Refund) RefundFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refund = do
}

// RefundOf is the truth about a refund.
func (f *Fake) RefundOf(no string) FakeRefund {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.refunds[no]; r != nil {
		return *r
	}
	return FakeRefund{State: supplier.RefundNotFound}
}

// SetRefund changes the truth about a refund.
func (f *Fake) SetRefund(no string, state supplier.RefundState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.truth(no).to(state)
}

func (f *Fake) truth(no string) *FakeRefund {
	r := f.refunds[no]
	if r == nil {
		r = &FakeRefund{State: supplier.RefundNotFound}
		f.refunds[no] = r
	}
	return r
}

func (r *FakeRefund) to(state supplier.RefundState) {
	if state == supplier.RefundSucceeded && r.State != supplier.RefundSucceeded && r.State != supplier.RefundReturned {
		r.Moved++
	}
	r.State = state
}

func (f *Fake) faultOf(r supplier.Refund) RefundFault {
	f.mu.Lock()
	do := f.refund
	f.mu.Unlock()
	if do == nil {
		return ""
	}
	return do(r)
}

// Refund is a supplier.Refunder.
func (f *Fake) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	defer f.hasAnswered()
	fault := f.faultOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.truth(r.No)
	if fault == RefundDeaf || ctx.Err() != nil {
		return refundSaid(supplier.RefundUnknown, supplier.ClassTimeout), nil
	}
	x.Calls++
	switch {
	case fault == RefundOnce && x.Calls > 1:
		x.Moved++
	case x.State != supplier.RefundNotFound: // known: the same refund
	case fault == RefundNo:
		return refundSaid(supplier.RefundFailed, supplier.ClassRefused), nil
	case fault == RefundShort:
		return refundSaid(supplier.RefundShort, supplier.ClassRefused), nil
	case fault == RefundLazy:
		x.to(supplier.RefundProcessing)
	case fault == RefundStuck:
		x.to(supplier.RefundAbnormal)
	default:
		x.to(supplier.RefundSucceeded)
	}
	return f.said(x, fault), nil
}

// RefundQuery is a supplier.Refunder.
func (f *Fake) RefundQuery(_ context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	defer f.hasAnswered()
	fault := f.faultOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.truth(r.No)
	x.Queried++
	if fault == RefundDeaf {
		return refundSaid(supplier.RefundUnknown, supplier.ClassTimeout), nil
	}
	return f.said(x, fault), nil
}

func (f *Fake) said(x *FakeRefund, fault RefundFault) supplier.RefundAnswer {
	switch fault {
	case RefundLost:
		return refundSaid(supplier.RefundUnknown, supplier.ClassTimeout)
	case RefundVague:
		return refundSaid(supplier.RefundUnknown, supplier.ClassOK)
	case RefundWrong:
		return refundSaid(supplier.RefundUnknown, supplier.ClassBadSignature)
	}
	return refundSaid(x.State, supplier.ClassOK)
}

func refundSaid(state supplier.RefundState, class supplier.Class) supplier.RefundAnswer {
	a := supplier.RefundAnswer{
		State: state, Word: string(state), Exchange: supplier.Exchange{
			Class: class, Status: 200, Request: []byte("POST /refund"),
			Body: []byte("{}"),
		},
	}
	if state == supplier.RefundSucceeded {
		a.SupplierNo = "SR-1"
	}
	return a
}

// OnList makes the Fake a supplier.RefundLister with these lists, as Stripe is one; nil = it is
// none.
func (f *Fake) OnList(do func(supplier.Refund) supplier.RefundList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists = do
}

func (f *Fake) refunder() supplier.Refunder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists == nil {
		return f
	}
	return lister{f, f.lists}
}

// lister is a Fake that lists the refunds of a payment.
type lister struct {
	*Fake
	do func(supplier.Refund) supplier.RefundList
}

// Refunds is a supplier.RefundLister.
func (l lister) Refunds(_ context.Context, r supplier.Refund) (supplier.RefundList, error) {
	return l.do(r), nil
}

// Listed is the answer of a healthy supplier that names these refunds.
func Listed(all ...supplier.RefundReport) supplier.RefundList {
	return supplier.RefundList{All: all, Exchange: refundSaid("", supplier.ClassOK).Exchange}
}

// NotListed is an answer without a list.
func NotListed() supplier.RefundList {
	return supplier.RefundList{Unknown: true, Exchange: refundSaid("", supplier.ClassTimeout).Exchange}
}
