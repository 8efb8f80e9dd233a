package verify

import (
	"fmt"
	"slices"
	"strings"

	"backstop/internal/fund/payout"
)

// payoutEntry returns an expression that counts the entries of one step of a payout with its
// amount, or with its fee.
func payoutEntry(step, column string) string {
	return "(SELECT count(*) FROM transfers t WHERE t.ref = 'payout:' || CAST(x.id AS TEXT) || ':" + step + "' AND t.amount = x." + column +
		")"
}

// stepOf returns an expression for the state of a payout's step; ” = there is none.
func stepOf(step string) string {
	return "coalesce((SELECT s.state FROM fund_steps s WHERE s.payout_id = x.id AND s.step = '" + step + "'), '')"
}

// stepIn is the condition that a payout's step has one of the states, of which "" stands for none.
func stepIn(step string, of []payout.StepState) string {
	states := slices.DeleteFunc(slices.Clone(of), func(s payout.StepState) bool { return s == "" })
	all := payout.StepMoves.In(stepOf(step), states...)
	switch {
	case len(states) == len(of):
		return all
	case len(states) == 0:
		return stepOf(step) + " = ''"
	}
	return "(" + stepOf(step) + " = '' OR " + all + ")"
}

// payoutStepClaims: a payout's steps are in a cell of its table, each has its own key, and the
// entries are those of the steps, each once.
func payoutStepClaims() []claim {
	const oneIf = " <> CASE WHEN %s THEN 1 ELSE 0 END"
	var (
		debited  = payout.StepMoves.In(stepOf(payout.Debit), payout.Success)
		reversed = payout.StepMoves.In(stepOf(payout.Reversal), payout.Success)
		returned = payout.StepMoves.In(stepOf(payout.Credit), payout.CameBack)
		arrived  = payout.StepMoves.In(stepOf(payout.Credit), payout.Success)
		over     = payout.Moves.In("x.status", payout.Reversed)
		cells    []string
		entries  []string
	)
	for _, c := range payout.Cells {
		cells = append(cells, payout.Moves.In("x.status", c.Status...)+" AND "+stepIn(payout.Debit, c.Debit)+" AND "+
			stepIn(payout.Credit, c.Credit)+" AND "+stepIn(payout.Reversal, c.Reversal))
	}
	for _, e := range []struct{ step, column, when string }{
		{"D", "amount", debited},
		{"C", "amount", payout.Moves.In("x.status", payout.Succeeded) + " OR " + returned},
		{"R", "amount", reversed},
		{"X", "amount", returned},
		{"L", "amount", over + " AND " + arrived},
		{"F", "fee_amount", "x.fee_amount > 0 AND " + debited},
		{"FR", "fee_amount", "x.fee_amount > 0 AND " + reversed},
	} {
		entries = append(entries, payoutEntry(e.step, e.column)+fmt.Sprintf(oneIf, e.when))
	}
	return []claim{
		{
			table: "payouts", wrong: "NOT (" + strings.Join(cells, " OR ") + ")",
			what: "'payout ' || x.payout_no || ' is ' || x.status || ', but its steps are not those of a payout'",
		},
		{
			table: "payouts", wrong: strings.Join(entries, " OR "),
			what: "'payout ' || x.payout_no || ' is ' || x.status || ', but its entries in the ledger do not match'",
		},
		{
			table: "fund_steps",
			wrong: "x.key <> 'P' || CAST(x.payout_id AS TEXT) || CASE x.step WHEN 'debit' THEN ':D' WHEN 'credit' THEN ':C' ELSE ':R' END",
			what:  "'payout P' || CAST(x.payout_id AS TEXT) || ' has another key for its ' || x.step || ': ' || x.key",
		},
	}
}

// payoutSumClaims: of each payout that has ended, debit − reversal = credit − returned.
func payoutSumClaims() []claim {
	sum := func(step string) string {
		return "coalesce((SELECT sum(t.amount) FROM transfers t WHERE t.ref = 'payout:' || CAST(x.id AS TEXT) || ':" + step + "'), 0)"
	}
	return []claim{{
		table: "payouts", where: "NOT " + payout.Moves.In("x.status", payout.Moves.Open()...),
		wrong: sum("D") + " - " + sum("R") + " <> " + sum("C") + " - " + sum("X"),
		what:  "'payout ' || x.payout_no || ' has ended, but what was debited is not what was credited'",
	}}
}
