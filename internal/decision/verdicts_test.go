package decision_test

import (
	"fmt"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/order"
)

// approve approves and runs a waiting decision, or runs a failed one again, and reports whether
// that was accepted.
func (r *rules) approve(s step, again bool) bool {
	d := r.decisions[s.decision]
	checker := r.people[s.by]
	from := approval.Waiting
	if again {
		from = approval.Failed
	}
	if !again && d.checker == s.by && (d.state == approval.Done || d.state == approval.Failed) {
		return s.hash // a repeat
	}
	is := func(mistake string) bool { return r.mistake == mistake }
	if d.second && d.maker == s.by && !is("own") {
		return false
	}
	if checker.disabled && !is("people") { // does nothing, not even end what is late
		return false
	}
	if d.second && !mayApprove(d.role, checker.role, d.unverified) || !d.second && !mayPropose(checker.role, d.action, false) {
		return false
	}
	if d.state != from && !(is("twice") && d.state == approval.Done) || again && d.tries >= 3 {
		return false
	}
	if !again && d.late && !is("late") {
		r.end(d, approval.Expired)
		return false
	}
	version := d.version
	if again {
		version = d.freed
	}
	if !s.hash || r.versionOf(d.object) != version && !is("version") && !is("twice") {
		return false
	}
	maker := r.people[d.maker]
	if (maker.disabled || !mayPropose(maker.role, d.action, false)) && !is("people") { // nothing is queried for whoever may not propose
		return false
	}
	if !r.queriedFor(d.action, d.object, s.says, d.unverified) && !is("lies") {
		return false
	}
	switch {
	case is("people"):
	case maker.disabled, checker.disabled, !mayPropose(maker.role, d.action, r.ofMoney(d.object) && !is("needs")), d.second &&
		!mayApprove(d.role, checker.role, d.unverified):
		return false
	}
	if r.versionOf(d.object) != version && !is("version") && !is("twice") || again && r.isDecided(d.object) {
		return false
	}
	if s.crash == "before" && !is("state first") && !is("effect first") || !r.works(d) {
		return false
	}
	switch {
	case again && s.fails: // all of it was rolled back
		d.tries++
		return true
	case again:
		r.hold(d)
	default:
		d.checker = s.by
	}
	r.run(s.decision, d, s)
	return true
}

// works reports whether the effect is still possible. If not, nothing changes.
func (r *rules) works(d *verdict) bool {
	switch d.action {
	case decision.AcceptLate:
		return r.order.status == order.Closed || r.order.status == order.Failed
	case decision.AcceptAmount, decision.Attach:
		return r.order.status.Open()
	}
	return true
}

// run carries out a decision.
func (r *rules) run(n int, d *verdict, s step) {
	again := d.state == approval.Failed
	d.tries++
	if s.fails {
		d.state = approval.Failed
		r.release(d)
		return
	}
	done := d.state
	d.state = approval.Done
	if r.mistake == "state first" && s.crash == "before" {
		return
	}
	checker, by := &person{}, "" // none, if one person decides
	if d.second {
		checker, by = r.people[s.by], s.by // for a rerun this may be someone else than at first
	}
	want := d.version
	if again {
		want = r.versionOf(d.object)
	}
	maker := r.people[d.maker]
	r.effects = append(r.effects, effect{
		decision: n, checker: by, makerRole: maker.role, makerAway: maker.disabled, checkerRole: checker.role,
		checkerAway: checker.disabled,
		version:     r.versionOf(d.object), approved: want, late: d.late && !again, contradicted: queries(d.action) &&
			!r.agrees(d.action, s.says),
		solo: d.alone && (!r.ofOne || r.atStake(d.object) > soloLimit),
	})
	r.effect(n, d)
	if r.mistake == "effect first" && s.crash == "before" {
		d.state = done
		d.tries--
	}
}

func (r *rules) effect(n int, d *verdict) {
	if d.object < 0 {
		switch d.action {
		case decision.MarkPaid:
			r.pay(tradeM)
		case decision.ForceClosed:
			r.move(order.Closed)
		case decision.ForceFailed:
			r.move(order.Failed)
		}
		return
	}
	x := r.issues[d.object]
	x.state, x.by = exception.Resolved, n+1
	x.version++
	switch d.action {
	case decision.AcceptLate, decision.AcceptAmount, decision.Attach:
		r.pay(x.trade)
	case decision.Ignore:
		x.state = exception.Ignored
	case decision.ResolvedElsewhere, decision.OweBack:
		if x.held {
			kind := map[string]string{decision.ResolvedElsewhere: "elsewhere", decision.OweBack: "refund"}[d.action]
			r.entries = append(r.entries, fmt.Sprintf("%s %d %d", kind, n+1, amountOf(x.trade)))
			r.free(x.trade)
		}
	}
}

// reject and withdraw end a waiting decision and report whether that was accepted.
func (r *rules) reject(s step) bool {
	d, p := r.decisions[s.decision], r.people[s.by]
	switch {
	case d.maker == s.by, p.disabled, p.role != access.Finance && p.role != access.Lead:
		return false
	case d.state == approval.Rejected && d.checker == s.by:
		return true
	case d.state != approval.Waiting, d.late:
		return false
	}
	d.checker = s.by
	r.end(d, approval.Rejected)
	return true
}

func (r *rules) withdraw(s step) bool {
	d := r.decisions[s.decision]
	switch {
	case d.maker != s.by, r.people[s.by].disabled:
		return false
	case d.state == approval.Withdrawn:
		return true
	case d.state != approval.Waiting, d.late:
		return false
	}
	r.end(d, approval.Withdrawn)
	return true
}

// expire ends overdue proposals.
func (r *rules) expire() {
	for _, d := range r.decisions {
		if d.state == approval.Waiting && d.late {
			r.end(d, approval.Expired)
		}
	}
}
