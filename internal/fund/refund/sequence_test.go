package refund

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// sequences is how many sequences are tried on each engine.
func sequences() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 1000
	}
	return 25
}

// seedOf is that of REFUND_SEED, else a new one.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("REFUND_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("REFUND_SEED=%d", seed)
	return seed
}

// thing is a random history of one payment at its supplier, and what it has reported.
type thing struct {
	rng   *rand.Rand
	trade string
	day   int
	// Refunds made there: their amounts, 0 = they failed.
	made  map[string]int64
	total int64 // of everything that was ever refunded, as its totals say
	left  int64
	said  []func(*supplier.Callback) // messages
}

// message adds a message, dated.
func (s *thing) message(change func(*supplier.Callback)) {
	s.day++
	day := s.day
	s.said = append(s.said, func(c *supplier.Callback) {
		c.OrderRef, c.TradeNo, c.Status, c.RefundTotal = "", s.trade, supplier.Refunded, 0
		c.OccurredAt = time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		c.EventKey = fmt.Sprint(s.trade, " ", day)
		change(c)
	})
}

func (s *thing) sum() {
	amount := s.total
	s.message(func(c *supplier.Callback) { c.RefundTotal, c.Amount = amount, amount })
}

func (s *thing) number(no string, amount int64, said supplier.RefundState) {
	s.message(func(c *supplier.Callback) {
		c.RefundID, c.Amount, c.Refund = no, amount, said
		if said != supplier.RefundSucceeded {
			c.Status = supplier.Other
		}
	})
}

// acts makes some refunds. Each is reported by its number or by a total, or by both; those of one
// payment have all their numbers, or all their totals.
func (s *thing) acts(n int, numbers bool) {
	for range n {
		if s.left < 10 {
			return
		}
		amount := 1 + s.rng.Int64N(s.left/2)
		no := fmt.Sprint("re_", s.trade, "_", len(s.made))
		s.made[no], s.total, s.left = amount, s.total+amount, s.left-amount
		both := s.rng.IntN(2) == 0
		if s.rng.IntN(3) == 0 && (numbers || both) {
			s.number(no, amount, supplier.RefundProcessing)
		}
		if numbers || both {
			s.number(no, amount, supplier.RefundSucceeded)
		}
		if !numbers || both {
			s.sum()
		}
		if s.rng.IntN(4) == 0 { // it comes back, and stays in the totals
			s.number(no, amount, supplier.RefundFailed)
			s.made[no] = 0
		}
	}
}

// shuffled returns the messages since the last call in any order, with some of them again.
func (s *thing) shuffled() []func(*supplier.Callback) {
	all := s.said
	s.said = nil
	for _, m := range slices.Clone(all) {
		if s.rng.IntN(3) == 0 {
			all = append(all, m)
		}
	}
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (s *thing) went() (sum int64) {
	for _, amount := range s.made {
		sum += amount
	}
	return sum
}

// Whatever the order of messages, about a payment that paid an order or is in suspense: what is
// booked is what moved at the supplier, and nothing is open about it.
func TestTheBooksFollowTheSupplierWhateverArrivesFirst(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		rng := rand.New(rand.NewPCG(seedOf(t), 1))
		var merchant, held, there int64
		for i := range sequences() {
			second, ours := rng.IntN(4) == 0, rng.IntN(2) == 0
			o := k.created()
			s := &thing{rng: rng, trade: "T-" + o.OrderNo, made: map[string]int64{}, left: 1999}
			if second { // the order is paid by another payment
				k.pays(o, "first "+o.OrderNo)
				ours = false
				merchant, there = merchant+1999, there-1999
			}
			numbers := rng.IntN(2) == 0
			s.acts(rng.IntN(4), numbers)
			k.delivers(o, s, true)
			var r *Refund
			if ours && s.left > 10 {
				r = k.sends(s, o)
			}
			s.acts(rng.IntN(4), numbers)
			if r != nil && rng.IntN(2) == 0 { // it ends among the messages
				k.ends1(r)
				r = nil
			}
			k.delivers(o, s, false)
			if r != nil {
				k.ends1(r)
			}
			went := s.went()
			var own int64
			for _, mine := range k.of(o) {
				if mine.Adopted == "" && mine.Status == Succeeded {
					own += mine.Amount
				}
			}
			if second {
				held, there = held+1999-went, there-1999+went
				k.Want(t, 0, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
				k.Want(t, went/1999, "SELECT count(*) FROM exceptions WHERE kind = 'duplicate_payment' AND order_id = ? AND outcome = 'refunded_elsewhere'", o.ID)
			} else {
				merchant, there = merchant+1999-went-own, there-1999+went+own
				k.Want(t, went+own, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
				status := "partial"
				if went+own == 0 {
					status = "none"
				}
				k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = ?", o.ID, status)
			}
			k.Want(t, held, suspenseLeft)
			k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved' AND kind <> 'duplicate_payment' AND kind <> 'refund_failed'")
			k.balances(fmt.Sprint("sequence ", i), merchant, 0, there)
			if t.Failed() {
				t.Fatalf("sequence %d: second %t, ours %t, numbers %t, made %v, total %d", i, second, ours, numbers, s.made, s.total)
			}
		}
	})
}

func (k *till) created() *order.Order {
	k.t.Helper()
	o, _, err := k.Processor.Create(k.t.Context(), k.M1, payment.CreateRequest{OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY", Supplier: "f1"})
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

// delivers sends the messages in any order, and the payment among them.
func (k *till) delivers(o *order.Order, s *thing, pays bool) {
	k.t.Helper()
	all := s.shuffled()
	at := s.rng.IntN(len(all) + 1)
	for i := range len(all) + 1 {
		if pays && i == at {
			k.pays(o, s.trade)
		}
		if i < len(all) {
			k.says(o, "", 0, all[i])
		}
	}
}

// sends asks for a refund of ours and sends it; the supplier accepts it later, at once, or not at
// all.
func (k *till) sends(s *thing, o *order.Order) *Refund {
	k.t.Helper()
	r := k.mustCreate(o, 1+s.rng.Int64N(s.left/2))
	s.left -= r.Amount
	fault := paymenttest.RefundLazy
	refused := s.rng.IntN(3) == 0
	if refused {
		fault = paymenttest.RefundDeaf
	}
	k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return fault })
	k.run(r)
	k.fake.OnRefund(nil)
	switch {
	case refused:
		k.fake.SetRefund(r.RefundNo, supplier.RefundFailed)
	case s.rng.IntN(3) == 0: // it was accepted, so totals have it, and fails
		s.total += r.Amount
		k.fake.SetRefund(r.RefundNo, supplier.RefundFailed)
	default:
		s.total += r.Amount
		k.fake.SetRefund(r.RefundNo, supplier.RefundSucceeded)
	}
	return r
}

// ends1 lets the answer about a refund of ours arrive.
func (k *till) ends1(r *Refund) {
	k.t.Helper()
	k.run(r)
	if got := k.reload(r); Moves.Of(got.Status).Open {
		k.t.Fatalf("it is %s", got.Status)
	}
}

func (k *till) of(o *order.Order) []*Refund {
	k.t.Helper()
	all, err := OfOrder(k.t.Context(), k.DB, o.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}
