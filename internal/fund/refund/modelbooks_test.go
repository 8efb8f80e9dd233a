package refund

import (
	"slices"

	"backstop/internal/fund"
)

// bookedFor lists what is booked for each status after the first entry.
var bookedFor = map[Status][]fund.Fact{
	Succeeded: {fund.RefundDone}, Failed: {fund.RefundBack}, Rejected: {fund.RefundBack}, Cancelled: {fund.RefundBack},
	Returned: {fund.RefundDone, fund.RefundReturned, fund.RefundBack},
}

func (s *story) check() {
	var counts, fees, adopted, made, held int64
	for _, r := range s.all {
		first := fund.RefundHeld
		if r.Adopted != "" {
			first = fund.RefundDone
			r.booked[first] += r.booked[fund.RefundAdopted] // one entry instead of two
			delete(r.booked, fund.RefundAdopted)
			adopted += r.Amount
		}
		want := map[fund.Fact]int{first: 1}
		for _, f := range bookedFor[r.Status] {
			want[f] = 1
		}
		for _, f := range slices.Concat([]fund.Fact{first}, bookedFor[Returned]) {
			if r.booked[f] != want[f] {
				s.wrong("%s is %s, and %s is booked %d times, want %d", r.RefundNo, r.Status, f, r.booked[f], want[f])
			}
		}
		held += r.Amount * int64(r.booked[fund.RefundHeld]-r.booked[fund.RefundDone]-r.booked[fund.RefundBack]+
			r.booked[fund.RefundReturned])
		if r.Adopted != "" {
			held += r.Amount * int64(r.booked[fund.RefundDone])
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
