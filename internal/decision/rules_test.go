package decision_test

import (
	"slices"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/order"
)

// rules is the reference model of the desk, in memory: operators, one order, the supplier's
// messages about it, and decisions. Stories run on it alone, and on it and the program in
// parallel.
type rules struct {
	people    map[string]*person
	order     ordered
	history   []order.Status
	issues    []*issue
	decisions []*verdict
	received  map[string]bool // trades with a callback
	surplus   map[string]bool // trades that came after the order had ended
	held      map[string]bool // trades booked in suspense
	entries   []string
	notices   []string
	effects   []effect
	ofOne     bool // the house is one of one person: see soloLimit

	mistake string // of a negative control: the rule that it breaks
}

type person struct {
	role     string
	disabled bool
}

type ordered struct {
	status  order.Status
	version int
	trade   string
	amount  int
}

// issue is an exception.
type issue struct {
	kind, trade string
	state       exception.State
	version     int
	held        bool
	by          int // the decision that ended it, from 1; 0 = none
}

// verdict is an approval. Its object is an issue, or the order (-1).
type verdict struct {
	action         string
	object         int
	maker, checker string
	role           string // the maker's at that time
	state          approval.State
	version, freed int
	tries          int
	unverified     bool
	second, late   bool // second: it waits for a second person
	alone          bool // of two people in another house
}

// effect is the run of a decision, with the facts of that moment.
type effect struct {
	decision               int
	checker                string
	makerRole, checkerRole string
	makerAway, checkerAway bool
	version, approved      int // of the object
	late, contradicted     bool
	solo                   bool // alone, beyond what the house allows
}

// Amounts, in minor units.
const (
	price   = 1999
	mispaid = 2100
	// soloLimit is what one person may decide in a house of one: price, but not mispaid.
	soloLimit = 2000
)

// Trades of a story. tradeC has another amount, tradeL names no order, tradeM is that of
// mark_paid. A query answers with tradeA, or with tradeL for its reference.
const (
	tradeA, tradeB, tradeC, tradeL, tradeM = "A", "B", "C", "L", "M"
)

// roster is the operators of a story with their initial roles.
var roster = map[string]string{"finance": access.Finance, "lead": access.Lead, "lead2": access.Lead, "ops": access.Ops}

func newRules(status order.Status) *rules {
	r := &rules{
		people: map[string]*person{}, order: ordered{status: status, version: 2}, received: map[string]bool{}, surplus: map[string]bool{},
		held:   map[string]bool{},
		issues: []*issue{{kind: exception.Malformed, state: exception.Opened, version: 1}}, history: []order.Status{
			order.Pending,
			order.Paying,
		},
	}
	if status == order.Closed {
		r.order.version, r.notices, r.history = 3, []string{"order.closed"}, []order.Status{order.Pending, order.Closing, order.Closed}
	}
	for name, role := range roster {
		r.people[name] = &person{role: role}
	}
	return r
}

func amountOf(trade string) int {
	if trade == tradeC {
		return mispaid
	}
	return price
}

// queries reports whether the supplier is queried before the action.
func queries(action string) bool {
	return !slices.Contains([]string{decision.OweBack, decision.ResolvedElsewhere, decision.Ignore}, action)
}

// isDecided reports whether the object has an open decision.
func (r *rules) isDecided(object int) bool {
	return slices.ContainsFunc(r.decisions, func(d *verdict) bool { return d.object == object && d.state.Open() })
}

// fits reports whether the action may be proposed for the object in its current state.
func (r *rules) fits(action string, object int) bool {
	if r.isDecided(object) {
		return false
	}
	if object < 0 {
		return r.order.status.Open()
	}
	x := r.issues[object]
	if !exception.Moves.Can(x.state, exception.Proposed) {
		return false
	}
	gone := r.order.status == order.Closed || r.order.status == order.Failed
	switch action {
	case decision.AcceptLate:
		return x.kind == exception.LatePayment && gone
	case decision.AcceptAmount:
		return x.kind == exception.AmountMismatch && r.order.status.Open()
	case decision.Attach:
		return x.kind == exception.UnknownOrder && x.held && r.order.status.Open()
	case decision.OweBack:
		return x.held
	case decision.Ignore:
		return !x.held
	}
	return true
}

// ofMoney reports whether the object carries an amount.
func (r *rules) ofMoney(object int) bool {
	return object < 0 || r.issues[object].kind != exception.Malformed
}

func mayPropose(role string, action string, money bool) bool {
	easy := action == decision.Ignore || action == decision.ResolvedElsewhere
	return role == access.Finance || role == access.Lead || role == access.Ops && easy && !money
}

func mayApprove(maker, checker string, unverified bool) bool {
	return checker == access.Lead || checker == access.Finance && maker == access.Lead && !unverified
}

// atStake returns the amount of the object.
func (r *rules) atStake(object int) int {
	switch {
	case object < 0:
		return price
	case !r.ofMoney(object):
		return 0
	}
	return amountOf(r.issues[object].trade)
}

// versionOf returns the object's version.
func (r *rules) versionOf(object int) int {
	if object < 0 {
		return r.order.version
	}
	return r.issues[object].version
}

// queriedFor queries the supplier, if the action does, confirms the answer, and reports whether
// the decision may go on.
func (r *rules) queriedFor(action string, object int, says string, unverified bool) bool {
	if !queries(action) {
		return true
	}
	if says == "paid" {
		trade := tradeA
		if object >= 0 && r.issues[object].trade == tradeL {
			trade = tradeL
		}
		r.message(trade, true)
	}
	return r.agrees(action, says) && (says != "unknown" || unverified)
}

func (r *rules) agrees(action, says string) bool {
	switch action {
	case decision.MarkPaid:
		return says == "unknown" || says == "paid"
	case decision.ForceClosed, decision.ForceFailed:
		return says != "paid" && says != "paying"
	}
	return true
}

// propose makes a proposal and reports whether it was accepted.
func (r *rules) propose(s step) bool {
	p, money := r.people[s.by], r.ofMoney(s.object)
	if !mayPropose(p.role, s.action, money) || !r.fits(s.action, s.object) {
		return false
	}
	if !r.queriedFor(s.action, s.object, s.says, s.unverified) || p.disabled || !r.fits(s.action, s.object) {
		return false
	}
	second := money || s.action != decision.Ignore && s.action != decision.ResolvedElsewhere
	alone := second && r.ofOne && (r.atStake(s.object) <= soloLimit || r.mistake == "solo")
	if second = second && !alone; alone && s.unverified && queries(s.action) && p.role != access.Lead {
		return false
	}
	d := &verdict{
		alone: alone, action: s.action, object: s.object, maker: s.by, role: p.role, state: approval.Waiting,
		unverified: s.unverified && queries(s.action), second: second,
	}
	if second && !slices.ContainsFunc([]string{"finance", "lead", "lead2", "ops"}, func(name string) bool {
		c := r.people[name]
		return name != s.by && !c.disabled && mayApprove(p.role, c.role, d.unverified)
	}) {
		return false
	}
	if !second && s.crash == "before" || !second && s.fails {
		return false // proposal and effect are one transaction
	}
	r.hold(d)
	r.decisions = append(r.decisions, d)
	if !second {
		r.run(len(r.decisions)-1, d, s)
	}
	return true
}

// hold marks the object as proposed.
func (r *rules) hold(d *verdict) {
	if d.object >= 0 {
		r.issues[d.object].state = exception.Proposed
		r.issues[d.object].version++
	}
	if d.state == approval.Waiting {
		d.version = r.versionOf(d.object)
	}
}

// release opens the object again.
func (r *rules) release(d *verdict) {
	if d.object >= 0 && r.issues[d.object].state == exception.Proposed {
		r.issues[d.object].state = exception.Opened
		r.issues[d.object].version++
	}
	d.freed = r.versionOf(d.object)
}

func (r *rules) end(d *verdict, to approval.State) {
	d.state = to
	r.release(d)
}
