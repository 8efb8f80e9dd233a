package refund

import (
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"backstop/internal/ledger/fact"
	"backstop/internal/supplier"
)

// The supplier of the model, and its messages.

// called is the supplier's side of a call.
func (s *story) called(r *modelled) supplier.RefundState {
	remembers := time.Duration(s.now-r.reached)*time.Microsecond < s.forgets
	if r.state != supplier.RefundNotFound && remembers {
		return r.state
	}
	said := rapid.SampledFrom([]supplier.RefundState{
		supplier.RefundSucceeded, supplier.RefundSucceeded, supplier.RefundProcessing, supplier.RefundFailed, supplier.RefundShort,
		supplier.RefundAbnormal, supplier.RefundUnknown,
	}).Draw(s.t, "call")
	switch {
	case said == supplier.RefundUnknown, said == supplier.RefundShort: // it never arrived, or left no trace
		return said
	case s.atSupplier()+r.Amount > s.paid:
		said = supplier.RefundFailed
	}
	r.reached = s.now
	s.becomes(r, said)
	return said
}

// becomes changes what the supplier has.
func (s *story) becomes(r *modelled, state supplier.RefundState) {
	if state == supplier.RefundSucceeded {
		r.moved++
		defer s.message()
	}
	r.state = state
}

// message is the supplier's message about a total.
func (s *story) message() {
	total := int64(0)
	for _, amount := range s.elsewhere {
		total += amount
	}
	for _, r := range s.all {
		if r.state == supplier.RefundSucceeded {
			total += r.Amount
		}
	}
	s.totals = append(s.totals, total)
}

// atSupplier is how much of the payment the supplier has refunded or is about to.
func (s *story) atSupplier() (sum int64) {
	for _, amount := range s.elsewhere {
		sum += amount
	}
	for _, r := range s.all {
		if slices.Contains([]supplier.RefundState{supplier.RefundSucceeded, supplier.RefundProcessing, supplier.RefundAbnormal}, r.state) {
			sum += r.Amount
		}
	}
	return sum
}

// decide lets the supplier end what it has begun, or take back what it has made.
func (s *story) decide() {
	r := s.one()
	if r == nil {
		return
	}
	switch r.state {
	case supplier.RefundProcessing, supplier.RefundAbnormal:
		s.becomes(r, rapid.SampledFrom([]supplier.RefundState{
			supplier.RefundSucceeded, supplier.RefundFailed,
			supplier.RefundAbnormal,
		}).Draw(s.t, "ends"))
	case supplier.RefundSucceeded:
		s.becomes(r, supplier.RefundReturned)
	}
}

// callback is a message that names a refund of ours, perhaps again, perhaps long after.
func (s *story) callback() {
	r := s.one()
	if r == nil || r.Adopted != "" {
		return
	}
	back := r.moved > 0 && s.draw(2, "says refunded") == 0
	query, known := named(r.Status, back)
	switch {
	case query:
		s.run(r)
	case !known:
		s.wrong("%s is %s, and its money moved", r.RefundNo, r.Status)
	}
}

// backOffice refunds a part of the payment at the supplier.
func (s *story) backOffice() {
	if left := s.paid - s.atSupplier(); left > 0 {
		s.elsewhere = append(s.elsewhere, int64(rapid.IntRange(1, int(left)).Draw(s.t, "elsewhere")))
		s.message()
	}
}

// adopts is a message about a refund that may not be ours: by its number or by a total.
func (s *story) adopts() {
	switch n, f := len(s.elsewhere), &s.reported; {
	case s.sums && len(s.totals) > 0:
		amount := s.totals[s.draw(len(s.totals), "total")]
		if !slices.ContainsFunc(f.totals, func(t total) bool { return t.amount == amount }) && amount > 0 {
			f.totals = append(f.totals, total{amount: amount, firstAt: s.now, newsAt: s.now})
		}
	case !s.sums && n > 0:
		i := s.draw(n, "number")
		no := strconv.Itoa(i)
		if !slices.ContainsFunc(f.numbers, func(x number) bool { return x.no == no }) {
			f.numbers = append(f.numbers, number{no: no, amount: s.elsewhere[i], stage: done, firstAt: s.now})
		}
	}
}

// book books what follows from all that was reported.
func (s *story) book() {
	f := s.reported
	f.booked, f.disputed = s.paid, s.disputed
	var rows []*Refund
	var own []*Refund
	for _, r := range s.all {
		if r.Adopted != "" {
			rows = append(rows, r.Refund)
		} else {
			own = append(own, r.Refund)
		}
	}
	f.ours = s.ours(own)
	made := f.conclude().made
	room := f.left() - made
	for _, r := range s.all {
		switch {
		case r.Adopted != "" || r.Status != Requested && r.Status != Approved:
		case r.Amount <= room:
			room -= r.Amount
		default:
			s.do(r, unsent(r.Status))
		}
	}
	for _, st := range f.plan(made, rows) {
		if st.row != nil {
			s.wrong("%+v changes a refund that was made at the supplier", st)
		}
		r := &modelled{
			Refund: &Refund{ID: int64(len(s.all) + 1), Amount: st.amount, Adopted: "made there", SupplierRefundNo: st.number}, booked: map[fact.Name]int{},
		}
		s.do(r, Adopted)
		s.all = append(s.all, r)
	}
}
