package refund

import (
	"slices"

	"backstop/internal/ledger/fact"
)

// bookedFor lists what is booked for each status after the first entry.
var bookedFor = map[Status][]fact.Name{
	Succeeded: {fact.RefundDone}, Failed: {fact.RefundBack}, Rejected: {fact.RefundBack}, Cancelled: {fact.RefundBack},
	Returned: {fact.RefundDone, fact.RefundReturned, fact.RefundBack},
}

func (s *story) check() {
	var counts, fees, adopted, made, held int64
	for _, r := range s.all {
		first := fact.RefundHeld
		if r.Adopted != "" {
			first = fact.RefundDone
			r.booked[first] += r.booked[fact.RefundAdopted] // one entry instead of two
			delete(r.booked, fact.RefundAdopted)
			adopted += r.Amount
		}
		want := map[fact.Name]int{first: 1}
		for _, f := range bookedFor[r.Status] {
			want[f] = 1
		}
		for _, f := range slices.Concat([]fact.Name{first}, bookedFor[Returned]) {
			if r.booked[f] != want[f] {
				s.wrong("%s is %s, and %s is booked %d times, want %d", r.RefundNo, r.Status, f, r.booked[f], want[f])
			}
		}
		held += r.Amount * int64(r.booked[fact.RefundHeld]-r.booked[fact.RefundDone]-r.booked[fact.RefundBack]+
			r.booked[fact.RefundReturned])
		if r.Adopted != "" {
			held += r.Amount * int64(r.booked[fact.RefundDone])
		}
		if Moves.Of(r.Status).Open {
			held -= r.Amount
		}
		if r.Status == Succeeded {
			counts, fees = counts+r.Amount, fees+r.FeeReturned
		} else if r.FeeReturned != 0 {
			s.wrong("%s is %s and returns a fee of %d", r.RefundNo, r.Status, r.FeeReturned)
		}
		if r.Adopted != "" {
			continue
		}
		over := r.Status == Succeeded || r.Status == Returned
		if r.moved > 1 || over && r.moved != 1 || s.ended(r.Status) && !over && r.moved != 0 {
			s.wrong("%s is %s, and its money moved %d times", r.RefundNo, r.Status, r.moved)
		}
	}
	for _, amount := range s.elsewhere {
		made += amount
	}
	charged := s.rule.Of(s.paid)
	switch {
	case held != 0:
		s.wrong("%d too much is held", held)
	case adopted > made:
		s.wrong("%d is adopted, and %d was made elsewhere", adopted, made)
	case s.taken()+s.disputed > s.paid:
		s.wrong("%d is refunded and %d disputed of %d", s.taken(), s.disputed, s.paid)
	case counts != s.refunded:
		s.wrong("the order has %d refunded, its refunds %d", s.refunded, counts)
	case fees > charged:
		s.wrong("%d of a fee of %d is returned", fees, charged)
	case counts == s.paid && s.rule.Return && fees != charged:
		s.wrong("all is refunded, but only %d of a fee of %d is returned", fees, charged)
	}
}
