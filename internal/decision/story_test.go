package decision_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/internal/order"
	"backstop/internal/payment/paymenttest"

	"pgregory.net/rapid"
)

// step is one event of a story.
type step struct {
	kind     string
	by       string // a person
	action   string
	object   int // an issue; -1 = the order
	decision int
	trade    string
	says     string // the answer of the supplier, if it is queried
	crash    string // before or after the commit; after it, the request is repeated
	role     string
	away     bool // the person is disabled; the house becomes one of one person

	unverified, hash, fails bool
}

func (s step) String() string {
	text := s.kind
	for _, w := range []string{s.by, s.action, s.trade, s.role} {
		if w != "" {
			text += " " + w
		}
	}
	switch s.kind {
	case stepPropose:
		text += fmt.Sprintf(" of %d", s.object)
	case stepApprove, stepAgain, stepReject, stepWithdraw, stepLapse, stepTouch:
		text += fmt.Sprintf(" %d", s.decision)
	}
	for word, is := range map[string]bool{"unverified": s.unverified, "another hash": !s.hash &&
		(s.kind == stepApprove || s.kind == stepAgain), "fails": s.fails, "away": s.away} {
		if is {
			text += " (" + word + ")"
		}
	}
	if s.says != "" {
		text += " it says " + s.says
	}
	if s.crash != "" {
		text += " crash " + s.crash
	}
	return text
}

// Kinds of steps.
const (
	stepCallback, stepPropose, stepApprove, stepAgain = "callback", "propose", "approve", "again"
	stepReject, stepWithdraw, stepLapse, stepExpire   = "reject", "withdraw", "lapse", "expire"
	stepPerson, stepTouch, stepHouse                  = "person", "touch", "house"
)

// apply applies a step to the model and reports whether it was accepted.
func (r *rules) apply(s step) bool {
	switch s.kind {
	case stepCallback:
		r.message(s.trade, false)
	case stepPropose:
		return r.propose(s)
	case stepApprove:
		return r.approve(s, false)
	case stepAgain:
		return r.approve(s, true)
	case stepReject:
		return r.reject(s)
	case stepWithdraw:
		return r.withdraw(s)
	case stepLapse:
		r.decisions[s.decision].late = true
	case stepExpire:
		r.expire()
	case stepPerson:
		r.people[s.by].role, r.people[s.by].disabled = s.role, s.away
	case stepHouse:
		r.ofOne = s.away
	case stepTouch:
		r.issues[s.object].version++
	}
	return true
}

// maxSteps is the maximum number of steps of one story.
const maxSteps = 40

// machine is what the model is compared with.
type machine interface {
	begin(order.Status)
	apply(step) error
	lines() []string
	books(last bool) string // what is wrong with them, perhaps looked for after the last step only; "" = nothing
}

// stories returns stories of the model alone (m is nil), or of the model and a machine.
func stories(mistake string, m machine, did map[string]int) func(t *rapid.T) int {
	return func(t *rapid.T) int {
		status := rapid.SampledFrom([]order.Status{order.Paying, order.Closed}).Draw(t, "status")
		r := newRules(status)
		r.mistake = mistake
		if m != nil {
			m.begin(status)
		}
		n := rapid.IntRange(1, maxSteps).Draw(t, "steps")
		var last []string
		for i := range n {
			s := r.draw(t)
			last = append(last, s.String())
			fail := func(format string, args ...any) {
				panic(paymenttest.Violation(fmt.Sprintf(format, args...) + fmt.Sprintf("; after %q", last)))
			}
			times, changed := 1, i == n-1
			if s.crash == "after" {
				times = 2
			}
			for range times {
				taken := r.apply(s)
				if taken {
					did[s.kind]++
				} else {
					did["refused "+s.kind]++
				}
				if m == nil {
					continue
				}
				if err := m.apply(s); (err == nil) != taken {
					fail("the model accepts it: %t; the program says %v", taken, err)
				}
				changed = changed || taken
			}
			if what := r.broken(); what != "" {
				fail("%s", what)
			}
			if m == nil {
				continue
			}
			if want, got := r.lines(), m.lines(); !slices.Equal(want, got) {
				fail("the model has\n%s\nthe program has\n%s\n", strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
			if !changed {
				continue // the state is the model's, and is verified after the next step that changes it, or the last
			}
			if what := m.books(i == n-1); what != "" {
				fail("the books: %s", what)
			}
		}
		return n
	}
}

func (r *rules) draw(t *rapid.T) (s step) {
	of := func(what string, all ...string) string { return rapid.SampledFrom(all).Draw(t, what) }
	kinds := []string{stepPropose, stepCallback, stepPropose, stepPropose, stepPerson, stepHouse} // the first ones are drawn most
	var waiting, failed, all []int
	for i, d := range r.decisions {
		all = append(all, i)
		switch d.state {
		case approval.Waiting:
			waiting = append(waiting, i)
		case approval.Failed:
			failed = append(failed, i)
		}
	}
	if len(all) > 0 {
		kinds = append(kinds, stepApprove, stepReject, stepWithdraw, stepExpire, stepTouch)
	}
	if len(waiting) > 0 {
		kinds = append([]string{stepApprove, stepApprove, stepLapse}, kinds...)
	}
	if len(failed) > 0 {
		kinds = append([]string{stepAgain}, kinds...)
	}
	s = step{kind: of("kind", kinds...), by: of("by", "lead", "finance", "lead2", "ops", "lead", "finance"), hash: true}
	mostly := func(some []int) int {
		if len(some) == 0 || of("which", "open", "open", "open", "any") == "any" {
			some = all
		}
		return rapid.SampledFrom(some).Draw(t, "decision")
	}
	proper := of("how", "properly", "properly", "properly", "anyhow") == "properly"
	switch s.kind {
	case stepCallback:
		s = step{kind: s.kind, trade: of("trade", tradeA, tradeB, tradeC, tradeL)}
	case stepPropose:
		r.drawProposal(t, &s, proper)
		s.crash = of("crash", "", "", "", "after")
		if r.ofOne || s.action == decision.Ignore || s.action == decision.ResolvedElsewhere {
			s.fails = of("fails", "no", "no", "yes") == "yes"
		}
	case stepApprove, stepAgain:
		if s.kind == stepAgain {
			waiting = failed
		}
		s.decision = mostly(waiting)
		d := r.decisions[s.decision]
		s.action, s.object, s.says = d.action, d.object, r.drawAnswer(t, d.action, d.unverified, proper)
		if fit := r.checkers(d); proper && len(fit) > 0 {
			s.by = of("checker", fit...)
		} else {
			s.hash = of("hash", "right", "right", "another") == "right"
		}
		s.crash = of("crash", "", "", "", "before", "after")
		s.fails = s.crash == "" && of("fails", "no", "no", "yes") == "yes"
	case stepReject, stepWithdraw, stepLapse:
		s.decision = mostly(waiting)
		if s.kind == stepWithdraw && of("whose", "own", "any") == "own" {
			s.by = r.decisions[s.decision].maker
		}
	case stepTouch:
		s.decision = mostly(waiting)
		if s.object = r.decisions[s.decision].object; s.object < 0 {
			s.object = 0
		}
	case stepHouse:
		s.away = of("house", "of one", "of two", "of one") == "of one"
	case stepPerson:
		s.role = roster[s.by]
		switch of("change", "role", "back", "away", "back") {
		case "role":
			s.role = of("role", access.Ops, access.Support, access.Finance, access.Lead)
		case "away":
			s.away = true
		}
	}
	return s
}

// drawProposal draws an action and its object. A proper one fits, and the supplier agrees.
func (r *rules) drawProposal(t *rapid.T, s *step, proper bool) {
	type one struct {
		object int
		action string
	}
	var all, fit []one
	for object := range len(r.issues) + 1 {
		actions := []string{decision.AcceptLate, decision.AcceptAmount, decision.Attach, decision.OweBack, decision.ResolvedElsewhere, decision.Ignore}
		if object--; object < 0 {
			actions = []string{decision.MarkPaid, decision.ForceClosed, decision.ForceFailed}
		}
		for _, a := range actions {
			if all = append(all, one{object, a}); r.fits(a, object) && mayPropose(r.people[s.by].role, a, r.ofMoney(object)) {
				fit = append(fit, one{object, a})
			}
		}
	}
	if proper && len(fit) > 0 {
		all = fit
	}
	x := all[(rapid.IntRange(0, 1<<16).Draw(t, "what")*31+len(r.decisions)*7)%len(all)] // small numbers are drawn most
	s.object, s.action = x.object, x.action
	s.unverified = queries(s.action) && rapid.Bool().Draw(t, "unverified")
	s.says = r.drawAnswer(t, s.action, s.unverified, proper)
}

// drawAnswer draws the answer to the query of an action, which need not be true.
func (r *rules) drawAnswer(t *rapid.T, action string, unverified, proper bool) string {
	if !queries(action) {
		return ""
	}
	says := []string{"unknown", "not_found", "paying", "paid"}
	if agrees := slices.DeleteFunc(slices.Clone(says), func(word string) bool {
		return !r.agrees(action, word) || word == "unknown" &&
			!unverified
	}); proper {
		says = agrees
	}
	return rapid.SampledFrom(says).Draw(t, "says")
}

// checkers returns who may approve the decision.
func (r *rules) checkers(d *verdict) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(r.people)) {
		if c := r.people[name]; name != d.maker && !c.disabled && mayApprove(r.people[d.maker].role, c.role, d.unverified) {
			all = append(all, name)
		}
	}
	return all
}
