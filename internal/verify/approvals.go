package verify

import (
	"fmt"

	"backstop/internal/approval"
	"backstop/internal/exception"
)

// ranStates are the states of approvals that have been, or are being, carried out.
var ranStates = []approval.State{approval.Approved, approval.Executing, approval.Done, approval.Failed}

// alwaysTwo are the actions that always need two people.
const alwaysTwo = "('accept_late', 'accept_amount', 'attach', 'keep_surplus', 'owe_back', 'mark_paid', 'force_closed', 'force_failed', 'settings.change', 'adjust', 'freeze', 'unfreeze', 'refund', 'refund.resolve', 'payout', 'payout.resolve')"

// approvalClaims: each decision that ran has two people, or is marked as made by one; it took
// effect at most once; and it is in the audit.
func approvalClaims() []claim {
	kept := func(step string) string {
		return "(SELECT count(*) FROM audit a WHERE a.object = 'approval' AND a.object_id = 'apr_' || CAST(x.id AS TEXT) AND a.action = 'approval." + step + "')"
	}
	const what = "'approval apr_' || CAST(x.id AS TEXT) || ' (' || x.action || ' of ' || x.object || ' ' || x.object_id || ') is ' || x.state || %s"
	return []claim{
		{
			table: "approvals", where: approval.Moves.In("x.state", ranStates...),
			wrong: "x.second AND NOT x.single_person AND (x.checker IS NULL OR x.checker = x.maker AND x.maker_kind = 'operator') OR x.single_person AND (x.checker IS NOT NULL OR NOT x.second)" +
				" OR NOT x.second AND x.action IN " + alwaysTwo,
			what: fmt.Sprintf(what, "', but two people did not decide it'"),
		},
		{
			table: "approvals",
			wrong: kept("propose") + " <> 1 OR " + kept("approve") + " <> CASE WHEN x.checker IS NOT NULL AND " +
				approval.Moves.In("x.state", ranStates...) + " THEN 1 ELSE 0 END" +
				" OR " + kept("done") + " <> CASE WHEN " + approval.Moves.In("x.state", approval.Done) + " THEN 1 ELSE 0 END",
			what: fmt.Sprintf(what, "', but the audit says otherwise'"),
		},
		{
			table: "approvals", where: approval.Moves.In("x.state", approval.Done),
			wrong: "x.tries < 1 OR x.done_at IS NULL OR x.decided_at IS NULL",
			what:  fmt.Sprintf(what, "', but was never carried out'"),
		},
	}
}

// decisionClaims: what is recorded as decided has its approval.
func decisionClaims() []claim {
	approved := "(SELECT count(*) FROM approvals ap WHERE ap.id = %s AND " + approval.Moves.In("ap.state", approval.Executing, approval.Done) +
		") = 0"
	return []claim{
		{
			table: "order_history", where: "x.cause = 'decided'",
			wrong: fmt.Sprintf(approved, "x.source_id"),
			what:  "'order ' || " + orderNo("x.order_id") + " || ' was decided to be ' || x.to_status || ', but by no approval'",
		},
		{
			table: "transfers", where: "x.ref LIKE 'adjust:%' OR x.ref LIKE 'freeze:%'",
			wrong: "(SELECT count(*) FROM approvals ap WHERE ap.id = " + idInRef("8") +
				" AND ap.action IN ('adjust', 'freeze', 'unfreeze') AND " +
				approval.Moves.In("ap.state", approval.Executing, approval.Done) +
				" AND (ap.amount = x.amount AND ap.currency = x.currency OR ap.amount = 0)) = 0",
			what: "'entry ' || x.ref || ' has no approval of that amount'",
		},
		{
			table: "exceptions", where: "x.decided_by <> 0 AND " + exception.Moves.In("x.state", exception.Resolved, exception.Ignored),
			wrong: fmt.Sprintf(approved, "x.decided_by"),
			what:  "'exception ' || CAST(x.id AS TEXT) || ' (' || x.kind || ') was decided, but by no approval'",
		},
	}
}
