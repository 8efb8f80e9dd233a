package refund

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"backstop/internal/fee"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// modelSteps is how many events the model tries with the full counts.
const modelSteps = 1_000_000

// pure are the rules that a story runs with.
type pure struct {
	heard   func(Status, supplier.RefundState) []Event
	repeats func(r *Refund, now int64, after, known time.Duration, tells bool) repeats
	ours    func([]*Refund) []*Refund // that the formula is told about
	left    func(paid, disputed, taken int64) int64
}

var ours = pure{heard, repeatsOf, func(all []*Refund) []*Refund { return all }, left}

// modelled is a refund, what was booked for it, and what its supplier did.
type modelled struct {
	*Refund
	booked map[fact.Name]int

	state   supplier.RefundState // at the supplier
	moved   int                  // how often its money moved there
	reached int64                // when the supplier got it
}

// story is one payment, its refunds and its supplier.
type story struct {
	pure
	t   *rapid.T
	now int64

	paid, disputed, refunded int64
	rule                     fee.Rule
	all                      []*modelled

	// The supplier recognizes a number until it forgets it, and may not find a refund for a while
	// (lags); after, known and tells are what is declared about it.
	forgets, lags time.Duration
	after, known  time.Duration
	tells, sums   bool
	elsewhere     []int64 // refunds made in its back office
	totals        []int64 // its messages that name a total, in any order and more than once
	reported      facts   // what was reported of them
	late          []func()
	statements    []statement
	ends          map[Status]int
}

// statement is what operators read about a refund before they propose how it ended.
type statement struct {
	of        *modelled
	succeeded bool
	at        int64
}

func (s *story) wrong(format string, args ...any) {
	panic(paymenttest.Violation(fmt.Sprintf(format, args...)))
}

func (s *story) draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(s.t, what) }
func (s *story) often(what string) bool      { return s.draw(4, what) > 0 }

// one draws a refund; nil = there is none.
func (s *story) one() *modelled {
	if len(s.all) == 0 {
		return nil
	}
	return s.all[s.draw(len(s.all), "refund")]
}

// do applies an event that must be legal.
func (s *story) do(r *modelled, e Event) {
	m, err := Next(r.Status, e)
	if err != nil {
		s.wrong("%v", err)
	}
	if s.ended(r.Status) && (r.Status != Succeeded || m.To != Returned) {
		s.wrong("%s left the end %s", e, r.Status)
	}
	r.Status, r.Version = m.To, r.Version+1
	for _, f := range m.Facts {
		r.booked[f]++
	}
	switch m.Counts {
	case 1:
		var amounts, returned int64
		for _, other := range s.all {
			if other != r && other.Status == Succeeded {
				amounts, returned = amounts+other.Amount, returned+other.FeeReturned
			}
		}
		r.FeeReturned = feeBack(s.rule, s.paid, r.Amount, amounts, returned)
	case -1:
		r.FeeReturned = 0
	}
	s.refunded += m.Counts * r.Amount
	s.ends[r.Status]++
}

func (s *story) ended(status Status) bool { return status != "" && !Moves.Of(status).Open }

// request holds an amount if so much is left.
func (s *story) request() {
	amount := int64(rapid.IntRange(1, int(s.paid)).Draw(s.t, "amount"))
	if amount > s.left(s.paid, s.disputed, s.taken()) {
		return
	}
	id := int64(len(s.all) + 1)
	r := &modelled{
		Refund: &Refund{ID: id, RefundNo: Number(id), Amount: amount, Status: Approved, Version: 1},
		booked: map[fact.Name]int{fact.RefundHeld: 1}, state: supplier.RefundNotFound,
	}
	if s.draw(3, "needs approval") == 0 {
		r.Status = Requested
	}
	s.all = append(s.all, r)
}

func (s *story) taken() (sum int64) {
	for _, r := range s.all {
		if !slices.Contains(dead, r.Status) {
			sum += r.Amount
		}
	}
	return sum
}

// may applies an event from outside, which may be illegal and then changes nothing.
func (s *story) may(e Event) {
	r := s.one()
	if r == nil {
		return
	}
	if _, err := Next(r.Status, e); err == nil {
		s.do(r, e)
	}
}

// dispute takes what is left of the payment and stops refunds that were not sent.
func (s *story) dispute() {
	for _, r := range s.all {
		if r.Status == Requested || r.Status == Approved {
			s.do(r, unsent(r.Status))
		}
	}
	s.disputed += min(int64(rapid.IntRange(1, int(s.paid)).Draw(s.t, "disputed")), s.left(s.paid, s.disputed, s.taken()))
}

// run is what a refund's compensation does: it queries, and sends.
func (s *story) run(r *modelled) {
	switch {
	case r == nil, !Moves.Of(r.Status).Open && r.Status != Succeeded, r.Status == Requested:
		return
	case r.FirstCallAt == nil && r.Status == Approved:
		s.send(r)
		return
	case r.FirstCallAt == nil: // adopted by a total: it has no number to ask for
		return
	}
	p := s.repeats(r.Refund, s.now, s.after, s.known, s.tells)
	said := r.state
	if said != supplier.RefundNotFound && s.now-r.reached < s.lags.Microseconds() && s.draw(2, "not found yet") == 0 {
		said = supplier.RefundNotFound
	}
	if s.draw(5, "query fails") == 0 {
		said = supplier.RefundUnknown
	}
	as, early, again := p.queried(said)
	switch {
	case early:
	case again:
		s.send(r)
	default:
		s.answer(func() { s.settle(r, p, as) })
	}
}

// send calls the supplier; its answer may be lost, or come late.
func (s *story) send(r *modelled) {
	now := s.now
	switch r.Status {
	case Approved:
		s.do(r, Sent)
		r.FirstCallAt = &now
	case Submitted, Unknown:
		if !s.repeats(r.Refund, s.now, s.after, s.known, s.tells).may {
			return
		}
	default:
		return
	}
	r.Refund.called(now)
	said := s.called(r)
	if s.draw(4, "answer is lost") == 0 {
		said = supplier.RefundUnknown
	}
	s.answer(func() { s.settle(r, repeats{answered: &now}, said) })
}

// answer applies an answer now, or later than others.
func (s *story) answer(settle func()) {
	if s.often("in time") {
		settle()
		return
	}
	s.late = append(s.late, settle)
}

// settle applies an answer, whatever the refund is by now.
func (s *story) settle(r *modelled, p repeats, said supplier.RefundState) {
	said = p.upToDate(said, r.LastCallAt)
	if said == supplier.RefundShort && Moves.Of(r.Status).Open {
		p.short(r.Refund, s.now)
	}
	switch said {
	case supplier.RefundSucceeded, supplier.RefundProcessing, supplier.RefundAbnormal, supplier.RefundReturned:
		if r.AcceptedAt == nil && r.Unresolved() {
			now := s.now
			r.AcceptedAt = &now
		}
	}
	for _, e := range s.heard(r.Status, said) {
		s.do(r, e)
	}
}

// operators read the supplier's statement, and decide by it later.
func (s *story) operators() {
	if n := len(s.statements); n > 0 && s.draw(2, "decide") == 0 {
		it := s.statements[s.draw(n, "statement")]
		if it.of.Unresolved() && !it.of.sentSince(it.at, it.succeeded) {
			e := Refused
			if it.succeeded {
				e = Arrived
			}
			s.do(it.of, e)
		}
		return
	}
	r := s.one()
	if r == nil || !r.Unresolved() {
		return
	}
	switch r.state {
	case supplier.RefundSucceeded:
		s.statements = append(s.statements, statement{r, true, s.now})
	case supplier.RefundFailed, supplier.RefundNotFound:
		s.statements = append(s.statements, statement{r, false, s.now})
	}
}

// step does one thing, and the books must be right after it.
func (s *story) step() {
	switch s.draw(15, "what") {
	case 0, 1:
		s.request()
	case 2:
		s.may(Approve)
	case 3:
		s.may(rapid.SampledFrom([]Event{Reject, Withdraw}).Draw(s.t, "stops"))
	case 4, 5, 6, 7:
		s.run(s.one())
	case 8:
		s.decide()
	case 9:
		s.callback()
	case 10:
		if s.draw(4, "elsewhere") == 0 {
			s.backOffice()
		}
		s.adopts()
	case 11:
		if n := len(s.late); n > 0 {
			i := s.draw(n, "late")
			settle := s.late[i]
			s.late = slices.Delete(s.late, i, i+1)
			settle()
		}
	case 12:
		s.operators()
	case 13:
		if s.draw(5, "dispute") == 0 {
			s.dispute()
		} else if s.draw(2, "dispute won") == 0 {
			s.disputed = 0
		}
	case 14:
	}
	s.now += rapid.SampledFrom([]time.Duration{
		time.Second, time.Second, time.Minute, 3 * time.Minute, 31 * time.Minute, 5 * time.Hour,
		19 * time.Hour, 25 * time.Hour, booking.ShortFor,
	}).
		Draw(s.t, "passes").Microseconds()
	s.book()
	s.check()
}

// stories returns a story with these rules, and a summary of all that were run.
func stories(p pure, change func(*story)) (one func(*rapid.T) int, summary func() map[Status]int) {
	ends := map[Status]int{}
	return func(t *rapid.T) int {
		s := &story{pure: p, t: t, now: 1_700_000_000_000_000, ends: ends, after: 2 * time.Minute}
		s.paid = int64(rapid.IntRange(1, 2000).Draw(t, "paid"))
		s.rule = fee.Rule{Rate: fee.PPM(s.draw(30_000, "rate")), Fixed: int64(s.draw(20, "fixed")), Return: s.draw(2, "fee returned") == 0}
		s.known, s.forgets, s.lags = supplier.Forever, supplier.Forever, 30*time.Hour
		switch s.draw(4, "numbers") {
		case 0: // as Stripe
			s.known, s.forgets, s.lags, s.tells = 20*time.Hour, 24*time.Hour, s.after, true
		case 1: // the same, if its list were not complete
			s.known, s.forgets = 20*time.Hour, 24*time.Hour
		case 2: // nothing is known about it
			s.known, s.forgets, s.lags = 0, 0, s.after
		}
		s.sums = s.draw(2, "sums") == 0
		if change != nil {
			change(s)
		}
		const steps = 60
		for range steps {
			s.step()
		}
		return steps
	}, func() map[Status]int { return ends }
}

// Whatever happens in whatever order: money is held once, and released or spent once; a refund
// succeeds once its money moved, which is once; the merchant gets back no more than its fee, and
// all of it with the whole payment; and no end is left except by money that came back.
func TestThePureRulesNeverLoseARefund(t *testing.T) {
	t.Parallel()
	one, ends := stories(ours, nil)
	paymenttest.RunStories(t, modelSteps, one)
	t.Logf("refunds became %v", ends())
	for _, s := range Moves.Statuses() {
		if ends()[s] == 0 && s != Requested {
			t.Errorf("no refund became %s", s)
		}
	}
}

// The controls: machines that do one thing wrong break an invariant.
func TestWrongRulesAreSeen(t *testing.T) {
	t.Parallel()
	releases, believes, forever, sums := ours, ours, ours, ours
	releases.heard = func(s Status, said supplier.RefundState) []Event {
		if e := heard(s, said); !slices.Equal(e, []Event{Doubted}) {
			return e
		}
		return []Event{Refused}
	}
	believes.repeats = func(r *Refund, now int64, _, known time.Duration, tells bool) repeats {
		return repeatsOf(r, now, 0, known, tells)
	}
	forever.repeats = func(r *Refund, now int64, after, _ time.Duration, tells bool) repeats {
		return repeatsOf(r, now, after, supplier.Forever, tells)
	}
	without := func(leave func(*Refund) bool) func([]*Refund) []*Refund {
		return func(all []*Refund) []*Refund { return slices.DeleteFunc(slices.Clone(all), leave) }
	}
	sums.ours = without(func(r *Refund) bool { return r.Status == Returned })
	double, greedy := ours, ours
	double.ours = without((*Refund).Unresolved)
	greedy.left = func(paid, _, taken int64) int64 { return left(paid, 0, taken) }
	for name, c := range map[string]struct {
		pure
		change func(*story)
	}{
		"releases the money when the answer is unknown": {releases, nil},
		"believes at once that nothing is there": {believes, func(s *story) {
			s.known, s.forgets, s.lags, s.tells = 0, 0, s.after,
				true
		}},
		"repeats a call whose number was forgotten": {forever, func(s *story) {
			s.known, s.forgets, s.lags = 20*time.Hour, 24*time.Hour,
				30*time.Hour
		}},
		"adopts what came back":      {sums, func(s *story) { s.sums = true }},
		"adopts its own open refund": {double, func(s *story) { s.sums = true }},
		"refunds what is disputed":   {greedy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, _ := stories(c.pure, c.change)
			broken := paymenttest.FindViolation(t, modelSteps, one)
			if broken == "" {
				t.Error("the model does not see it")
			}
			t.Log(broken)
		})
	}
}
