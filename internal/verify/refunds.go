package verify

import (
	"fmt"

	"backstop/internal/fund/refund"
)

// refundEntry returns an expression that counts the entries of one step of a refund with its
// amount.
func refundEntry(step string, amount ...string) string {
	is := append(amount, "x.amount")[0]
	return "(SELECT count(*) FROM transfers t WHERE t.ref = 'refund:' || CAST(x.id AS TEXT) || ':" + step + "' AND t.amount = " + is + ")"
}

// refundStepClaims: each refund has exactly the entries of its status, each once.
func refundStepClaims() []claim {
	const oneIf = " <> CASE WHEN %s THEN 1 ELSE 0 END"
	ours := "x.adopted = ''"
	// The entry of a refund made at the supplier has the amounts of the parts split from it.
	const whole = "x.amount + (SELECT coalesce(sum(p.amount), 0) FROM refunds p WHERE p.split_from = x.id AND p.split_from <> 0)"
	wrong := refundEntry("D") + fmt.Sprintf(oneIf, ours) +
		" OR " + refundEntry("C") + fmt.Sprintf(oneIf, ours+" AND "+refund.Moves.In("x.status", refund.Succeeded, refund.Returned)) +
		" OR " + refundEntry("R") + fmt.Sprintf(oneIf, refund.Moves.In("x.status", refund.Rejected, refund.Cancelled, refund.Failed,
		refund.Returned)) +
		" OR " + refundEntry("X") + fmt.Sprintf(oneIf, refund.Moves.In("x.status", refund.Returned)) +
		" OR " + refundEntry("A", whole) + fmt.Sprintf(oneIf, "x.adopted <> '' AND x.split_from = 0")
	return []claim{{
		table: "refunds", wrong: wrong,
		what: "'refund ' || x.refund_no || ' is ' || x.status || ', but its entries in the ledger do not match'",
	}}
}

// refundSumClaims: refunds never exceed their payment, and the order has their total.
func refundSumClaims() []claim {
	sum := func(where string) string {
		return "(SELECT coalesce(sum(r.amount), 0) FROM refunds r WHERE r.order_id = x.order_id AND r.order_id <> 0 AND " + where + ")"
	}
	of := func(column string) string {
		return "(SELECT o." + column + " FROM orders o WHERE o.id = x.order_id)"
	}
	return []claim{{
		table: "refunds", where: "x.order_id <> 0",
		wrong: sum("NOT "+refund.Moves.In("r.status", refund.Failed, refund.Rejected, refund.Cancelled, refund.Returned)) + " > " +
			of("paid_amount") +
			" OR " + sum(refund.Moves.In("r.status", refund.Succeeded)) + " <> " + of("refunded_amount"),
		what: "'order ' || " + orderNo("x.order_id") + " || ' has refunds above its payment, or a refunded total that differs from them'",
	}}
}
