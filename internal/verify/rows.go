package verify

import "strings"

// Row names a row that is wrong, in the terms that operators use.
type Row struct {
	Object string `json:"object"` // order, trade, account, callback, exception, approval, entry or payout
	ID     string `json:"id"`
}

// Objects of a Row.
const (
	OfOrder     = "order"
	OfTrade     = "trade"   // the supplier's number of a payment
	OfAccount   = "account" // its code and currency
	OfCallback  = "callback"
	OfException = "exception"
	OfApproval  = "approval"
	OfEntry     = "entry" // of the ledger, by its ref
	OfPayout    = "payout"
)

// paidID is the id of the order that a transfer x paid, from its ref; 0 = none.
const paidID = "CASE WHEN trim(substr(x.ref, 6), '0123456789') = '' AND length(x.ref) BETWEEN 6 AND 24 THEN CAST(substr(x.ref, 6) AS BIGINT) ELSE 0 END"

// rowsOf has an expression for the row that a claim about a table names, as "object id".
var rowsOf = map[string]string{
	"orders":          "'order ' || x.order_no",
	"order_history":   "'order ' || " + orderNo("x.order_id"),
	"order_payments":  "'order ' || " + orderNo("x.order_id"),
	"events":          "'order ' || " + orderNo("x.subject_id"),
	"delivery_events": "'order ' || " + orderNo("x.subject_id"),
	"deliveries":      "'order ' || " + orderNo("x.subject_id"),
	"callbacks":       "'callback ' || CAST(x.id AS TEXT)",
	"payment_attempts": "CASE WHEN x.order_id = 0 THEN coalesce(" +
		holder("'held:' || CAST(x.account_id AS TEXT) || ':' || x.supplier_trade_no") +
		", 'trade ' || x.supplier_trade_no) ELSE 'order ' || " + orderNo("x.order_id") + " END",
	"transfers": "CASE WHEN x.ref LIKE 'paid:%' THEN coalesce((SELECT 'order ' || o.order_no FROM orders o WHERE o.id = " + paidID +
		"), 'entry ' || x.ref) ELSE coalesce(" + holder("x.ref") + ", 'entry ' || x.ref) END",
	"refunds":    "CASE WHEN x.order_id = 0 THEN 'trade ' || x.trade_no ELSE 'order ' || " + orderNo("x.order_id") + " END",
	"payouts":    "'payout ' || x.payout_no",
	"fund_steps": "'payout P' || CAST(x.payout_id AS TEXT)",
	"disputes":   "CASE WHEN x.order_id = 0 THEN 'trade ' || x.trade_no ELSE 'order ' || " + orderNo("x.order_id") + " END",
	"approvals":  "'approval apr_' || CAST(x.id AS TEXT)",
	"exceptions": "'exception ' || CAST(x.id AS TEXT)",
}

// holder returns an expression for the exception that names a held entry; NULL = none.
func holder(ref string) string {
	return "(SELECT 'exception ' || CAST(max(e.id) AS TEXT) FROM exceptions e WHERE e.held_ref <> '' AND e.held_ref = " + ref + ")"
}

// readRow parses the result of an expression in rowsOf. Held money is named by its trade number;
// an order that is not stored has no name.
func readRow(text string) Row {
	object, id, _ := strings.Cut(text, " ")
	if held, ok := strings.CutPrefix(id, "held:"); ok && object == OfEntry {
		if _, trade, ok := strings.Cut(held, ":"); ok {
			return Row{OfTrade, trade}
		}
	}
	if object == OfOrder && strings.HasPrefix(id, "id ") {
		return Row{}
	}
	return Row{object, id}
}

// accountRow returns the account for a key of balances; a key of a whole currency has none.
func accountRow(key string) Row {
	if !strings.Contains(key, " ") {
		return Row{}
	}
	return Row{OfAccount, key}
}

// heldRow returns the row for a key of held.
func heldRow(key string) Row {
	if id, ok := strings.CutPrefix(key, "exception "); ok {
		id, _, _ = strings.Cut(id, " ")
		return Row{OfException, id}
	}
	return accountRow(key)
}
