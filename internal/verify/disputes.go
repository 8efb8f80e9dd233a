package verify

import (
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/refund"
)

// disputeStepClaims: each dispute has exactly the entries that follow from what is known about
// it, each once.
func disputeStepClaims() []claim {
	const (
		history = "FROM fund_history h WHERE h.subject = '" + booking.OfDispute + "' AND h.subject_id = x.id"

		ours  = "x.order_id <> 0"
		taken = "(x.order_id <> 0 AND NOT x.released OR x.held_ref <> '')"
		whose = "(x.order_id <> 0 OR x.held_ref <> '')"
	)
	entry := func(step, amount, when string) string {
		n := "(SELECT count(*) FROM transfers t WHERE t.ref = 'dispute:' || CAST(x.id AS TEXT) || ':" + step + "' AND t.amount = " +
			amount + " AND t.currency = x.currency)"
		all := "(SELECT count(*) FROM transfers t WHERE t.ref = 'dispute:' || CAST(x.id AS TEXT) || ':" + step + "')"
		want := "CASE WHEN " + when + " THEN 1 ELSE 0 END"
		return n + " <> " + want + " OR " + all + " <> " + want
	}
	return []claim{
		{
			table: "disputes",
			wrong: entry("H", "x.amount", ours) + " OR " + entry("U", "x.amount", "x.released") + " OR " +
				entry("W", "x.amount", taken+" AND x.withdrawn") +
				" OR " + entry("B", "x.reinstated", taken+" AND x.reinstated > 0") + " OR " + entry("F", "x.fee", whose+" AND x.fee > 0") +
				" OR " + entry("FB", "x.fee_back", whose+" AND x.fee_back > 0") +
				" OR x.released AND (x.order_id = 0 OR NOT (" + dispute.Moves.In("x.status", dispute.Won) +
				")) OR x.reinstated > 0 AND NOT x.withdrawn",
			what: "'dispute ' || x.dispute_no || ' is ' || x.status || ', but its entries in the ledger do not match'",
		},
		{
			table: "disputes",
			wrong: "(SELECT count(*) " + history + " AND h.version = x.version AND h.to_status = x.status) <> 1" +
				" OR (SELECT count(*) " + history + ") <> x.version" +
				" OR (x.closed_at IS NULL) <> (" + dispute.Moves.In("x.status", dispute.Moves.Open()...) + ")",
			what: "'dispute ' || x.dispute_no || ' is ' || x.status || ' in version ' || CAST(x.version AS TEXT) || ', but its history differs'",
		},
	}
}

// disputeSumClaims: the order has the total of its disputes, which with its refunds never
// exceeds its payment, but for what was refunded already when a dispute was opened.
func disputeSumClaims() []claim {
	const of = "FROM disputes d WHERE d.order_id = x.order_id AND d.order_id <> 0"
	open, lost := dispute.Moves.In("d.status", dispute.Moves.Open()...), dispute.Moves.In("d.status", dispute.Lost)
	disputed := "(SELECT coalesce(sum(CASE WHEN " + open + " THEN d.amount WHEN " + lost +
		" THEN d.amount - d.reinstated ELSE 0 END), 0) " + of + ")"
	exceeds := "(SELECT coalesce(sum(d.exceeds), 0) " + of + " AND (" + open + " OR " + lost + "))"
	refunds := "(SELECT coalesce(sum(r.amount), 0) FROM refunds r WHERE r.order_id = x.order_id AND r.order_id <> 0 AND NOT " +
		refund.Moves.In("r.status", refund.Failed, refund.Rejected, refund.Cancelled, refund.Returned) + ")"
	return []claim{{
		table: "disputes", where: "x.order_id <> 0",
		wrong: disputed + " <> (SELECT o.disputed_amount FROM orders o WHERE o.id = x.order_id)" +
			" OR " + refunds + " + " + disputed + " - " + exceeds + " > (SELECT o.paid_amount FROM orders o WHERE o.id = x.order_id)",
		what: "'order ' || " + orderNo("x.order_id") +
			" || ' has disputes and refunds above its payment, or a disputed total that differs from them'",
	}}
}
