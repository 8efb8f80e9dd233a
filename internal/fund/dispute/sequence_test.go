package dispute_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/fund/refund"
	"backstop/internal/order"

	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// sequences is how many sequences are tried on each engine.
func sequences() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 500
	}
	return 25
}

// seedOf is that of DISPUTE_SEED, else a new one.
func seedOf(t testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("DISPUTE_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("DISPUTE_SEED=%d", seed)
	return seed
}

// claim is a dispute at its supplier.
type claim struct {
	no              int
	amount          int64
	stage           supplier.DisputeStage
	withdrawn, back bool
}

// taken is what the supplier holds of the money.
func (c *claim) taken() int64 {
	if c.withdrawn && !c.back {
		return c.amount
	}
	return 0
}

// lasts is what the order has disputed.
func (c *claim) lasts() int64 {
	if c.stage == supplier.DisputeWon {
		return 0
	}
	return c.amount
}

// deal is a random history of one payment at its supplier, whose messages are the same for any
// number of orders.
type deal struct {
	rng         *rand.Rand
	day         int
	made        map[int]int64 // refunds made there; 0 = they failed
	total, left int64         // total is of everything that was ever refunded, as messages say; left is not refunded
	over        bool          // the supplier refunds what is disputed, and the other way round
	claims      []*claim
	said        []func(*supplier.Callback)
}

func (s *deal) message(change func(*supplier.Callback)) {
	s.day++
	day := s.day
	s.said = append(s.said, func(c *supplier.Callback) {
		c.OrderRef, c.Status = "", supplier.Refunded
		c.OccurredAt = time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC)
		c.EventKey = fmt.Sprint(c.TradeNo, " ", day)
		change(c)
	})
}

func (s *deal) number(no int, amount int64, said supplier.RefundState) {
	s.message(func(c *supplier.Callback) {
		c.RefundID, c.Amount, c.Refund = fmt.Sprint("re_", no, "_", c.TradeNo), amount, said
		if said != supplier.RefundSucceeded {
			c.Status = supplier.Other
		}
	})
}

// refunds makes a refund, which is reported by its number, by a total (of a callback, or beside the payment), or by both.
func (s *deal) refunds(numbers bool) {
	amount, no, both := 1+s.rng.Int64N(s.free()/2), len(s.made), s.rng.IntN(2) == 0
	s.made[no], s.total, s.left = amount, s.total+amount, s.left-amount
	if numbers || both {
		s.number(no, amount, supplier.RefundSucceeded)
	}
	if total, answer := s.total, s.rng.IntN(3) == 0; !numbers || both {
		s.message(func(c *supplier.Callback) {
			c.RefundTotal, c.Amount = total, total
			if answer { // to a query of the payment
				c.Status, c.OrderRef, c.Amount, c.TotalAt = supplier.Paid, strings.TrimPrefix(c.TradeNo, "T-"), 1999, c.OccurredAt
				c.OccurredAt = time.Time{}
			}
		})
	}
	if s.rng.IntN(4) == 0 { // it comes back, and stays in the totals
		s.number(no, amount, supplier.RefundFailed)
		s.made[no], s.left = 0, s.left+amount
	}
}

// tells reports a dispute as it is now.
func (s *deal) tells(c *claim) {
	is := *c
	s.message(func(to *supplier.Callback) {
		to.Status, to.RawStatus, to.Amount = supplier.Disputed, "charge.dispute.updated", is.amount
		to.Dispute = &supplier.Dispute{
			No: fmt.Sprint("du_", is.no, "_", to.TradeNo), Reason: "fraudulent", Status: string(is.stage), Stage: is.stage, Withdrawn: is.withdrawn,
			Over: is.stage == supplier.DisputeWon || is.stage == supplier.DisputeLost,
		}
		if is.back {
			to.Dispute.Reinstated = is.amount
		}
	})
}

// disputes opens a dispute, or takes one a step further.
func (s *deal) disputes() {
	if len(s.claims) == 0 || s.claims[len(s.claims)-1].stage != supplier.DisputeOpened {
		most := s.free()
		if s.over {
			most = 1999
		}
		c := &claim{no: len(s.claims), amount: 1 + s.rng.Int64N(most), stage: supplier.DisputeOpened}
		s.claims = append(s.claims, c)
		s.tells(c)
		if c.withdrawn = s.rng.IntN(2) == 0; c.withdrawn {
			s.tells(c)
		}
		return
	}
	c := s.claims[len(s.claims)-1]
	if s.rng.IntN(2) == 0 {
		c.stage, c.withdrawn = supplier.DisputeLost, true
		s.tells(c)
		if s.rng.IntN(2) == 0 {
			return
		}
	}
	c.stage = supplier.DisputeWon // also after it was lost
	s.tells(c)
	if c.withdrawn {
		c.back = true
		s.tells(c)
	}
}

func (s *deal) acts(n int, numbers bool) {
	for range n {
		open := len(s.claims) > 0 && s.claims[len(s.claims)-1].stage == supplier.DisputeOpened
		switch {
		case s.rng.IntN(2) == 0 && (open || s.free() > 0):
			s.disputes()
		case s.free() >= 10:
			s.refunds(numbers)
		}
	}
}

// messages returns those since the last call.
func (s *deal) messages() []func(*supplier.Callback) {
	defer func() { s.said = nil }()
	return s.said
}

// shuffled returns messages in any order, with some of them again.
func (s *deal) shuffled(all []func(*supplier.Callback)) []func(*supplier.Callback) {
	all = slices.Clone(all)
	for _, m := range slices.Clone(all) {
		if s.rng.IntN(3) == 0 {
			all = append(all, m)
		}
	}
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (s *deal) disputed() (sum int64) {
	for _, c := range s.claims {
		sum += c.lasts()
	}
	return sum
}

// free is what the supplier may still refund.
func (s *deal) free() int64 {
	if s.over {
		return s.left
	}
	return s.left - s.disputed()
}

// went is what went back at the supplier, and booked how much of that fits beside own refunds and
// disputes.
func (s *deal) went(own int64) (sum, booked int64) {
	for _, amount := range s.made {
		sum += amount
	}
	return sum, max(min(sum, 1999-own-s.disputed()), 0)
}

// replica is one order with the history of a deal.
type replica struct {
	o     *order.Order
	trade string
	mine  *refund.Refund
}

// delivers sends messages in an order of its own; pays = the payment is among them.
func (k *bank) delivers(s *deal, p *replica, all []func(*supplier.Callback), pays bool) {
	k.t.Helper()
	all = s.shuffled(all)
	at := s.rng.IntN(len(all) + 1)
	for i := range len(all) + 1 {
		if pays && i == at {
			k.pays(p.o, p.trade)
		}
		if i < len(all) {
			m := k.payment(p.o)
			m.Content.TradeNo = p.trade
			all[i](&m.Content)
			k.take(m)
		}
	}
	for range 2 { // as the job does
		if _, err := k.m.MatchLater(k.t.Context()); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *bank) pays(o *order.Order, trade string) {
	k.t.Helper()
	m := k.payment(o)
	m.Content.TradeNo, m.Content.EventKey = trade, "trade:"+trade+":paid"
	k.take(m)
}

// sends asks for a refund of ours and sends it; answered = the supplier's answer arrives.
func (k *bank) sends(p *replica, amount int64, fault paymenttest.RefundFault) {
	k.t.Helper()
	r, _, err := k.refunds.Create(k.t.Context(), k.M1, refund.Request{OrderNo: p.o.OrderNo, OutRefundNo: k.Out(), Amount: amount, Reason: "broken"})
	if err != nil {
		k.t.Fatal(err)
	}
	k.Fakes["f1"].OnRefund(func(supplier.Refund) paymenttest.RefundFault { return fault })
	k.runs(r)
	k.Fakes["f1"].OnRefund(nil)
	p.mine = r
}

// runs runs a refund's compensation once.
func (k *bank) runs(r *refund.Refund) {
	k.t.Helper()
	var items []compensation.Item
	if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_kind = 'refund' AND subject_id = ? AND state = 'waiting' ORDER BY id",
		r.ID).Scan(k.t.Context(), &items); err != nil || len(items) == 0 {
		k.t.Fatalf("%d open compensations: %v", len(items), err)
	}
	x := items[0]
	x.Attempts++
	state := "waiting"
	if replaycall.Kind(replaycall.Subjects{refund.Op: k.refunds.Subject()}).Run(k.t.Context(), x).IsDone() {
		state = "done"
	}
	if _, err := k.DB.NewRaw("UPDATE compensations SET attempts = attempts + 1, state = ? WHERE id = ?", state, x.ID).Exec(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// Whatever the order of messages about refunds and disputes of a payment, which paid an order or is
// in suspense: the books equal what moved at the supplier, and nothing is open about what is
// booked. Each history is told twice, in two orders.
func TestTheBooksFollowRefundsAndDisputesInAnyOrder(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		t := k.t
		rng := rand.New(rand.NewPCG(seedOf(t), 2))
		var merchant, reserved, held, at int64
		for i := range sequences() {
			second, numbers := rng.IntN(4) == 0, rng.IntN(2) == 0
			s := &deal{rng: rng, made: map[int]int64{}, left: 1999, over: !second && rng.IntN(3) == 0}
			both := []*replica{{o: k.unpaid()}, {o: k.unpaid()}}
			for _, p := range both {
				p.trade = "T-" + p.o.OrderNo
				if second {
					k.pays(p.o, "first "+p.o.OrderNo)
					merchant, at = merchant+1999, at-1999
				}
			}
			s.acts(rng.IntN(5), numbers)
			all := s.messages()
			for _, p := range both {
				k.delivers(s, p, all, true)
			}
			var own int64
			_, booked := s.went(0)
			// A dispute after a refund may have left the merchant less than these orders bring.
			if amount := min((1999-booked-s.disputed())/2, s.free()/2, k.balance("merchant:m1")/2, 900); !second && amount > 0 && rng.IntN(2) == 0 { // one of ours, which may be refused, or fail later
				fault, fails := paymenttest.RefundLazy, rng.IntN(3) == 0
				if rng.IntN(3) == 0 {
					fault, fails = paymenttest.RefundDeaf, true
				} else {
					s.total += amount
				}
				s.left -= amount
				if !fails {
					own = amount
				}
				for _, p := range both {
					k.sends(p, amount, fault)
					k.Fakes["f1"].SetRefund(p.mine.RefundNo, map[bool]supplier.RefundState{true: supplier.RefundFailed, false: supplier.RefundSucceeded}[fails])
				}
			}
			s.acts(rng.IntN(5), numbers)
			all = s.messages()
			for n, p := range both {
				if p.mine != nil && n == 0 {
					k.runs(p.mine)
				}
				k.delivers(s, p, all, false)
				if p.mine != nil && n == 1 {
					k.runs(p.mine)
				}
			}

			lasts, taken, open := s.disputed(), int64(0), int64(0)
			went, booked := s.went(own)
			exceeds := went - booked
			went = booked + own
			for _, c := range s.claims {
				taken += c.taken()
				if c.stage == supplier.DisputeOpened {
					open++
				}
			}
			for n, p := range both {
				if second {
					held, at = held+1999-went-taken, at-1999+went+taken
					k.Want(t, 0, "SELECT refunded_amount + disputed_amount FROM orders WHERE id = ?", p.o.ID)
				} else {
					merchant, reserved, at = merchant+1999-went-lasts, reserved+lasts-taken, at-1999+went+taken
					k.Want(t, went, "SELECT refunded_amount FROM orders WHERE id = ?", p.o.ID)
					k.Want(t, lasts, "SELECT disputed_amount FROM orders WHERE id = ?", p.o.ID)
					status := "partial"
					switch went {
					case 0:
						status = "none"
					case 1999:
						status = "full"
					}
					k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = ?", p.o.ID, status)
				}
				k.Want(t, open, "SELECT count(*) FROM exceptions WHERE kind = 'dispute_opened' AND state <> 'resolved' AND subject LIKE ?", "du_%_"+p.trade)
				k.Want(t, exceeds, "SELECT coalesce(sum(amount), 0) FROM exceptions WHERE kind = 'unknown_refund' AND state <> 'resolved' AND subject = ?", p.trade)
				if t.Failed() {
					t.Errorf("replica %d", n)
				}
			}
			k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved' AND kind NOT IN ('duplicate_payment', 'refund_failed', 'dispute_opened', 'unknown_refund')")
			k.balances(fmt.Sprint("sequence ", i), merchant, reserved, at)
			if got := k.balance("suspense:f1"); got != held {
				t.Errorf("suspense has %d, want %d", got, held)
			}
			if t.Failed() {
				for _, c := range s.claims {
					t.Logf("dispute %+v", *c)
				}
				t.Fatalf("sequence %d: second %t, over %t, own %d, numbers %t, made %v, total %d", i, second, s.over, own, numbers, slices.Sorted(maps.Values(s.made)), s.total)
			}
		}
		k.verified()
	})
}
