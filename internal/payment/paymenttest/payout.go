package paymenttest

import (
	"context"

	"backstop/internal/supplier"
)

// FakePayout is the truth about a payout at a Fake.
type FakePayout struct {
	State   supplier.PayoutState
	Moved   int // how often money moved: 1 is the only good answer
	Calls   int // orders that arrived
	Queried int
	Payee   supplier.Payee // of the last order
	Same    bool           // every order had the same content
	first   supplier.Payout
}

// PayoutFault is what a Fake does with a call about a payout.
type PayoutFault string

// Faults of payouts; "" = it acts and says so.
const (
	PayoutLost  PayoutFault = "lost"  // it acts, and its answer is lost
	PayoutDeaf  PayoutFault = "deaf"  // the call never arrives
	PayoutWrong PayoutFault = "wrong" // it acts, and its answer is signed wrongly
	PayoutLazy  PayoutFault = "lazy"  // it takes the call, and decides later
	PayoutNo    PayoutFault = "no"    // a listed final word
	PayoutShort PayoutFault = "short" // our account there is short of funds
	PayoutVague PayoutFault = "vague" // it acts, and its answers say nothing, though it is healthy
	PayoutOnce  PayoutFault = "once"  // it forgets numbers: each call pays
)

// OnPayout sets what becomes of the calls about payouts, both orders and queries.
func (f *Fake) OnPayout(do func(supplier.Payout) PayoutFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.payout = do
}

// PayoutOf is the truth about a payout.
func (f *Fake) PayoutOf(no string) FakePayout {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.payoutTruth(no)
}

// SetPayout changes the truth about a payout.
func (f *Fake) SetPayout(no string, state supplier.PayoutState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.payoutTruth(no).to(state)
}

func (f *Fake) payoutTruth(no string) *FakePayout {
	p := f.payouts[no]
	if p == nil {
		p = &FakePayout{State: supplier.PayoutNotFound, Same: true}
		f.payouts[no] = p
	}
	return p
}

func (p *FakePayout) to(state supplier.PayoutState) {
	if state == supplier.PayoutSucceeded && p.State != supplier.PayoutSucceeded && p.State != supplier.PayoutReturned {
		p.Moved++
	}
	p.State = state
}

func (f *Fake) payoutFault(p supplier.Payout) PayoutFault {
	f.mu.Lock()
	do := f.payout
	f.mu.Unlock()
	if do == nil {
		return ""
	}
	return do(p)
}

// Payable is a supplier.Payouter.
func (f *Fake) Payable(_ int64, currency string) error {
	if f.PayoutCurrency != "" && currency != f.PayoutCurrency {
		return &supplier.FieldError{Field: "currency", Problem: "it pays out " + f.PayoutCurrency + " only"}
	}
	return nil
}

// Payout is a supplier.Payouter.
func (f *Fake) Payout(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	defer f.hasAnswered()
	fault := f.payoutFault(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.payoutTruth(p.No)
	if fault == PayoutDeaf || ctx.Err() != nil {
		return payoutSaid(supplier.PayoutUnknown, supplier.ClassTimeout), nil
	}
	p.SupplierNo = ""
	if x.Calls++; x.Calls == 1 {
		x.first = p
	}
	x.Payee, x.Same = p.Payee, x.Same && x.first == p
	switch {
	case fault == PayoutOnce && x.Calls > 1:
		x.Moved++
	case x.State != supplier.PayoutNotFound: // known: the same payout
	case fault == PayoutNo:
		return payoutSaid(supplier.PayoutFailed, supplier.ClassRefused), nil
	case fault == PayoutShort:
		return payoutSaid(supplier.PayoutShort, supplier.ClassRefused), nil
	case fault == PayoutLazy:
		x.to(supplier.PayoutProcessing)
	default:
		x.to(supplier.PayoutSucceeded)
	}
	return f.saidPayout(x, fault), nil
}

// PayoutQuery is a supplier.Payouter.
func (f *Fake) PayoutQuery(_ context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	defer f.hasAnswered()
	fault := f.payoutFault(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.payoutTruth(p.No)
	x.Queried++
	if fault == PayoutDeaf {
		return payoutSaid(supplier.PayoutUnknown, supplier.ClassTimeout), nil
	}
	return f.saidPayout(x, fault), nil
}

func (f *Fake) saidPayout(x *FakePayout, fault PayoutFault) supplier.PayoutAnswer {
	switch fault {
	case PayoutLost:
		return payoutSaid(supplier.PayoutUnknown, supplier.ClassTimeout)
	case PayoutVague:
		return payoutSaid(supplier.PayoutUnknown, supplier.ClassOK)
	case PayoutWrong:
		return payoutSaid(supplier.PayoutUnknown, supplier.ClassBadSignature)
	}
	return payoutSaid(x.State, supplier.ClassOK)
}

func payoutSaid(state supplier.PayoutState, class supplier.Class) supplier.PayoutAnswer {
	a := supplier.PayoutAnswer{
		State: state, Word: string(state), Exchange: supplier.Exchange{
			Class: class, Status: 200, Request: []byte("POST /payout"),
			Body: []byte("{}"),
		},
	}
	if state == supplier.PayoutSucceeded {
		a.SupplierNo = "SP-1"
	}
	return a
}
