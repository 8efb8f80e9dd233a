package decision_test

import (
	"fmt"
	"slices"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/exception"
	"backstop/internal/order"
)

// lines returns the whole state as text, to be compared.
func (r *rules) lines() []string {
	all := []string{fmt.Sprintf("order %s v%d %s %d", r.order.status, r.order.version, r.order.trade, r.order.amount)}
	for _, x := range r.issues {
		all = append(all, fmt.Sprintf("issue %s %s %s v%d held %t by %d", x.kind, x.trade, x.state, x.version, x.held, x.by))
	}
	for _, d := range r.decisions {
		all = append(all, fmt.Sprintf("decision %s %s %s %s tries %d alone %t", d.action, d.state, d.maker, d.checker, d.tries, d.alone))
	}
	for _, e := range slices.Sorted(slices.Values(r.entries)) {
		all = append(all, "entry "+e)
	}
	return append(all, "notices "+strings.Join(slices.Sorted(slices.Values(r.notices)), " "))
}

// broken returns a violated invariant, "" = none. It uses the recorded facts, not the rules.
func (r *rules) broken() string {
	for i, s := range r.history[1:] {
		if !order.Moves.Can(r.history[i], s) {
			return fmt.Sprintf("the order went %v", r.history)
		}
	}
	effects := map[int]int{}
	for _, e := range r.effects {
		d := r.decisions[e.decision]
		effects[e.decision]++
		switch {
		case d.second && (d.maker == d.checker || d.maker == e.checker):
			return "maker and checker are one person: " + d.action
		case e.makerAway, e.checkerAway, !mayPropose(e.makerRole, d.action, r.ofMoney(d.object)), d.second &&
			!mayApprove(d.role, e.checkerRole, d.unverified):
			return fmt.Sprintf("%s was decided without permission: %+v", d.action, e)
		case e.version != e.approved:
			return fmt.Sprintf("%s was approved of version %d and done to version %d", d.action, e.approved, e.version)
		case e.solo:
			return d.action + " was decided by one person who may not"
		case e.late, e.contradicted:
			return fmt.Sprintf("%s was too late, or against what the supplier says: %+v", d.action, e)
		}
	}
	open := map[int]int{}
	for i, d := range r.decisions {
		if want := map[bool]int{true: 1}[d.state == approval.Done]; effects[i] != want {
			return fmt.Sprintf("%s is %s and took effect %d times", d.action, d.state, effects[i])
		}
		if d.state.Open() {
			open[d.object]++
		}
	}
	for i, x := range r.issues {
		if want := map[bool]int{true: 1}[x.state == exception.Proposed]; open[i] != want {
			return fmt.Sprintf("issue %d is %s and %d decisions about it are open", i, x.state, open[i])
		}
	}
	return r.unbooked()
}

// unbooked returns a violated invariant of the ledger: each trade with a message is booked once,
// suspense is what exceptions hold.
func (r *rules) unbooked() string {
	booked, suspense, paid := map[string]int{}, map[string]int{}, 0
	for _, e := range r.entries {
		var kind, what string
		var amount int
		_, _ = fmt.Sscanf(e, "%s %s %d", &kind, &what, &amount)
		switch kind {
		case "held":
			booked[what]++
			suspense[what] += amount
		case "paid":
			paid++
			if suspense[what] == 0 {
				booked[what]++
			} else {
				suspense[what] -= amount
			}
			if what != r.order.trade || amount != r.order.amount {
				return "the order is paid by another entry: " + e
			}
		case "elsewhere", "refund":
			var n int
			_, _ = fmt.Sscan(what, &n)
			suspense[r.issues[r.decisions[n-1].object].trade] -= amount
		}
	}
	if is := r.order.status == order.Paid; is != (paid == 1) || paid > 1 {
		return fmt.Sprintf("%d entries of an order that is %s", paid, r.order.status)
	}
	for trade := range r.received {
		if booked[trade] != 1 {
			return fmt.Sprintf("trade %s has a callback and is booked %d times: %q", trade, booked[trade], r.entries)
		}
	}
	for trade, amount := range suspense {
		if want := map[bool]int{true: amountOf(trade)}[r.inSuspense(trade)]; amount != want {
			return fmt.Sprintf("suspense has %d of trade %s, and the exceptions name %d", amount, trade, want)
		}
	}
	var notices []string
	for _, s := range r.history {
		if !s.Open() {
			notices = append(notices, "order."+string(s))
		}
	}
	if !slices.Equal(notices, r.notices) {
		return fmt.Sprintf("the merchant is notified of %q, and the order was %q", r.notices, notices)
	}
	return ""
}
