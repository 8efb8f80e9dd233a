package console

import (
	"backstop/internal/exception"
	"backstop/internal/report"
)

// Received is what suppliers reported as paid for an order, by where that money is.
type Received struct {
	InOrder  int64            // booked for the merchant, in the order's currency
	Held     []exception.Item // open ones whose money is in suspense
	Unbooked []exception.Item // open ones whose money is in no account
}

// Received returns what was reported as paid for the order.
func (s *Story) Received() Received {
	r := Received{InOrder: s.Order.PaidAmount}
	for _, x := range s.Exceptions {
		switch {
		case !exception.IsHeld(x.Kind) || !x.State.Open() || x.Currency == "" || x.Amount == 0:
		case x.HeldRef != "":
			r.Held = append(r.Held, x)
		default:
			r.Unbooked = append(r.Unbooked, x)
		}
	}
	return r
}

// Apart reports whether some of it is not in the order.
func (r Received) Apart() bool { return len(r.Held)+len(r.Unbooked) > 0 }

// Sums returns all of it by currency; currency is the order's.
func (r Received) Sums(currency string) []report.Sum {
	var s report.Standing
	if r.InOrder != 0 {
		s.Add(report.Sum{Currency: currency, Orders: 1, Minor: r.InOrder})
	}
	for _, all := range [][]exception.Item{r.Held, r.Unbooked} {
		for _, x := range all {
			s.Add(report.Sum{Currency: x.Currency, Orders: 1, Minor: x.Amount})
		}
	}
	return s.Sums
}
