package verify

import (
	"fmt"
	"time"

	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

// callbackClaims: the recorded outcome of a callback has taken place.
func callbackClaims() []claim {
	changed := func(to order.Status) string {
		return "x.order_id >= " + kept + " AND " + history.count("h", "h.order_id = x.order_id AND "+order.Moves.In("h.to_status", to)+
			" AND h.source_id = x.id") + " = 0"
	}
	what := "'callback ' || CAST(x.id AS TEXT) || ' is recorded as ' || x.outcome || ' of order \"' || x.order_no || '\", but that is not stored'"
	return []claim{
		{table: "callbacks", where: moves.Words("x.outcome", payment.Paid), wrong: changed(order.Paid), what: what},
		{table: "callbacks", where: moves.Words("x.outcome", payment.OrderFailed), wrong: changed(order.Failed), what: what},
		{table: "callbacks", where: moves.Words("x.outcome", payment.OrderClosed), wrong: changed(order.Closed), what: what},
		{
			// A repeat is known by its key, or by the order paid by the same trade number.
			table: "callbacks", where: moves.Words("x.outcome", payment.Repeat), what: what,
			// The supplier's settings, and with them its account, may have changed since.
			wrong: "NOT EXISTS (SELECT 1 FROM supplier_accounts s CROSS JOIN callback_keys k" + // in this order
				" WHERE k.account_id = s.id AND k.event_key = x.event_key AND k.digest = x.digest)" +
				" AND x.order_id >= " + kept + " AND " + history.count("h", "h.order_id = x.order_id AND "+order.Moves.In("h.to_status",
				order.Paid)) + " = 0",
		},
		{
			// Every other outcome is a kind of exception.
			table: "callbacks", what: what,
			where: "NOT (" + moves.Words("x.outcome", payment.Paid, payment.OrderFailed, payment.OrderClosed, payment.Repeat, payment.Ignored,
				payment.FailedTry,
				exception.DisputeOpened, exception.UnknownEvent) + ")",
			wrong: "NOT EXISTS (SELECT 1 FROM exceptions e WHERE e.order_no = x.order_no AND e.kind = x.outcome AND e.supplier_id = x.supplier_id)",
		},
		{
			// All messages of one dispute, or of one unknown type, share one exception,
			// whatever their order.
			table: "callbacks", what: what, where: moves.Words("x.outcome", exception.DisputeOpened, exception.UnknownEvent),
			wrong: "NOT EXISTS (SELECT 1 FROM exceptions e WHERE e.kind = x.outcome AND e.supplier_id = x.supplier_id)",
		},
	}
}

const (
	// overdue is how late an open delivery may be before it counts as forgotten: the tick finds
	// lost nudges within seconds, and those for the node that their merchant is connected to
	// within little more than a minute.
	overdue = 2 * time.Minute
	// behind is how late it may be while its merchant is being notified, slowly or at a limited
	// rate. The oldest are sent first.
	behind = time.Hour
)

// waits is the condition that a late delivery d will be sent: its merchant is parked, or the
// breaker has just changed, or there were recent attempts and d is not too late for that.
const waits = "(d.recipient_id IN (?) OR (SELECT count(*) FROM breakers b WHERE b.owner_id = d.recipient_id AND b.changed_at >= ?) > 0" +
	" OR (d.next_at >= ? AND (SELECT count(*) FROM report_recipients r WHERE r.recipient_id = d.recipient_id AND (r.last_ok_at >= ? OR r.last_failed_at >= ?)) > 0))"

// notifyClaims: the merchant was or will be notified of each payment, at each endpoint that
// must get it, or there is an exception, or the merchant has switched such events off, or it was paid in shadow mode. Orders
// imported as paid were notified elsewhere. Subscribers do not count.
func notifyClaims(now int64, parked []int64) []claim {
	const paid = "FROM deliveries d WHERE d.subject_id = x.order_id AND d.event_type = 'order.paid' AND NOT d.to_subscriber"
	const known = "(d.status = ?" +
		" OR (d.status IN (?) AND (coalesce(d.next_at, d.lease_until) >= ? OR " + waits + "))" +
		" OR (d.status = ? AND (d.last_class IN (?) OR (SELECT count(*) FROM orders o WHERE o.id = d.subject_id AND o.notify_url = '') = 1))" +
		" OR (d.status = ? AND (SELECT count(*) FROM orders o JOIN exceptions e ON e.order_no = o.order_no WHERE o.id = d.subject_id AND e.kind = ?) > 0))"
	late := now - overdue.Microseconds()
	return history.claims(claim{
		where: order.Moves.In("x.to_status", order.Paid) + " AND NOT (" + moves.Words("x.cause", order.Imported) + ")",
		wrong: "x.order_id >= " + notified + " AND NOT EXISTS (SELECT 1 " + paid + ") OR EXISTS (SELECT 1 " + paid + " AND " + known +
			" IS NOT TRUE)",
		args: []any{
			notify.Delivered, bun.List(notify.Moves.Open()), late, bun.List(parked), late, now - behind.Microseconds(), late, late,
			notify.Skipped, bun.List([]notify.Class{notify.SwitchedOff, notify.Shadow}), notify.Exhausted, exception.NotifyExhausted,
		},
		what: "'order ' || " + orderNo("x.order_id") + " || ' was paid, but its notification is ' || coalesce((SELECT max(d.status) " +
			paid + "), 'missing')" +
			" || coalesce(' since ' || CAST((SELECT min(coalesce(d.next_at, d.lease_until)) " + paid +
			") / 1000000 AS TEXT) || ' (Unix s)', '')",
	})
}

// stored names the two places where rows of one kind are stored: a table, and a view of the
// rows embedded in another table.
type stored [2]string

var (
	history  = stored{"order_history", "order_payments"}
	events   = stored{"events", "delivery_events"}
	attempts = stored{"notify_attempts", "first_attempts"}
)

// count returns an expression for the number of rows, with an alias, that satisfy a condition.
// With a union SQLite would scan all rows for each row it checks.
func (s stored) count(alias, where string) string {
	return fmt.Sprintf("((SELECT count(*) FROM %s %s WHERE %s) + (SELECT count(*) FROM %s %[2]s WHERE %[3]s))", s[0], alias, where, s[1])
}

// claims returns one claim for each place.
func (s stored) claims(c claim) []claim {
	c.table = s[0]
	other := c
	other.table = s[1]
	return []claim{c, other}
}

// paidClaims: a paid order has one settling attempt, with its trade number, and one entry, both
// of the amount paid, which is the order's unless an approval says otherwise; any other order
// has neither. The entry is from the supplier, or from suspense if that trade was held there.
// Orders imported as paid were booked elsewhere. Late and additional payments have an
// exception.
func paidClaims() []claim {
	var (
		decided = "(x.id < " + kept +
			" OR (SELECT count(*) FROM order_history h JOIN approvals p ON p.id = h.source_id WHERE h.order_id = x.id AND h.to_status = 'paid'" +
			" AND h.cause = '" + string(order.ByDecision) + "' AND h.source_kind = '" + order.SourceApproval + "' AND " + approvedIs +
			") > 0)"
		wasHeld = "(SELECT count(*) FROM payment_attempts a JOIN transfers h ON h.ref = 'held:' || CAST(a.account_id AS TEXT) || ':' ||" +
			" CASE WHEN a.supplier_trade_no <> '' THEN a.supplier_trade_no ELSE a.supplier_ref END WHERE a.order_id = x.id AND a.status = 'succeeded')"
		settled = "(SELECT count(*) FROM payment_attempts a WHERE a.order_id = x.id AND a.status = 'succeeded')"
		fitting = "(SELECT count(*) FROM payment_attempts a WHERE a.order_id = x.id AND a.status = 'succeeded' AND a.amount = x.paid_amount" +
			" AND a.supplier_trade_no = x.supplier_trade_no)"
		booked = "(SELECT count(*) FROM transfers t WHERE t.ref = 'paid:' || CAST(x.id AS TEXT))"
		exact  = "(SELECT count(*) FROM transfers t JOIN accounts c ON c.id = t.credit_account JOIN accounts b ON b.id = t.debit_account JOIN merchants m ON c.code = 'merchant:' || m.code" +
			" WHERE t.ref = 'paid:' || CAST(x.id AS TEXT) AND m.id = x.merchant_id AND (b.code LIKE 'supplier:%' OR b.code LIKE 'suspense:%' AND (" + wasHeld + " > 0 OR x.supplier_trade_no = '' AND " + decided + ")) AND t.amount = x.paid_amount AND t.currency = x.currency)"
	)
	imported := "(" + history.count("h", "h.order_id = x.id AND h.to_status = 'paid' AND h.cause = 'imported'") + " > 0 OR x.id < " + kept +
		" AND " + booked + " = 0)"
	return []claim{
		{
			table: "orders",
			wrong: "CASE WHEN x.status <> 'paid' THEN " + settled + " + " + booked + " <> 0" +
				" WHEN x.paid_at IS NULL OR " + settled + " <> 1 OR " + fitting + " <> 1 THEN TRUE" +
				" WHEN " + imported + " THEN " + booked + " <> 0" +
				" ELSE x.paid_amount <> x.amount AND NOT " + decided + " OR " + booked + " <> 1 OR " + exact + " <> 1 END",
			what: "'order ' || x.order_no || ' is ' || x.status || ' with ' || CAST(x.paid_amount AS TEXT) || ' of ' || CAST(x.amount AS TEXT) || ' ' || x.currency" +
				" || coalesce(' since ' || CAST(x.paid_at / 1000000 AS TEXT) || ' (Unix s)', '') || ', but has ' || CAST(" +
				settled + " AS TEXT) || ' settling attempts, ' || CAST(" + fitting +
				" AS TEXT) || ' of that amount and trade number, and ' || CAST(" +
				booked + " AS TEXT) || ' entries, ' || CAST(" + exact + " AS TEXT) || ' of that amount, merchant and a supplier'",
		},
		{
			table: "payment_attempts", key: "order_id", where: "x.order_id <> 0 AND " + payment.Moves.In("x.status", payment.SucceededSurplus),
			wrong: "(SELECT count(*) FROM orders o JOIN exceptions e ON e.order_no = o.order_no WHERE o.id = x.order_id AND " +
				moves.Words("e.kind", exception.LatePayment, exception.DuplicatePayment) +
				" AND (e.subject = x.supplier_trade_no OR x.supplier_trade_no = '')) = 0",
			what: "'attempt ' || x.supplier_ref || ' was paid late or twice, but there is no exception'",
		},
		{
			table: "payment_attempts", key: "order_id", where: "x.order_id = 0",
			wrong: "x.status <> '" + string(payment.SucceededSurplus) +
				"' OR (SELECT count(*) FROM transfers h WHERE h.ref = 'held:' || CAST(x.account_id AS TEXT) || ':' || x.supplier_trade_no) = 0",
			what: "'attempt ' || x.supplier_ref || ' is of no order, but nothing is held of it'",
		},
		{
			table: "payment_attempts", key: "order_id", where: payment.Moves.In("x.status", payment.Succeeded),
			wrong: "NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = x.order_id)",
			what:  "'attempt ' || x.supplier_ref || ' succeeded, but has no order'",
		},
		{
			table: "transfers", where: "x.ref LIKE 'paid:%'",
			wrong: "NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = " + paidID + ")",
			what:  "'entry ' || x.ref || ' has no order'",
		},
	}
}

// ledgerClaims: both sides of an entry are accounts in its currency. With a positive amount and
// both sides in one row, all sums are then zero.
func ledgerClaims() []claim {
	return []claim{{
		table: "transfers",
		wrong: "x.amount <= 0 OR (SELECT count(*) FROM journals j WHERE j.id = x.journal_id) <> 1" +
			" OR (SELECT count(*) FROM accounts a WHERE a.id IN (x.debit_account, x.credit_account) AND a.currency = x.currency) <> 2",
		what: "'entry ' || x.ref || ' is not between two accounts in ' || x.currency",
	}}
}

// kept and notified are the ids from which the histories of orders, and their notifications,
// are complete: older ones are past their retention and may have been deleted.
const (
	kept     = "coalesce((SELECT value FROM settings WHERE name = '" + order.HistorySince + "'), 0)"
	notified = "coalesce((SELECT value FROM settings WHERE name = '" + notify.Since + "'), 0)"
)

// historyClaims: the history has no gaps and only legal moves, and ends with the order's
// status. Only an order that may still change has a next_at.
func historyClaims() []claim {
	return append(history.claims(
		claim{
			wrong: "x.order_id >= " + kept +
				" AND ((SELECT count(*) FROM orders o WHERE o.id = x.order_id) <> 1 OR CASE WHEN x.from_status = '' THEN" +
				" (x.version <> 1 AND x.cause <> 'imported') OR (x.to_status <> 'pending' AND x.cause <> 'imported')" +
				" OR " + history.count("p", "p.order_id = x.order_id AND p.version < x.version") + " > 0" +
				" ELSE NOT " + order.Moves.Allows("x.from_status", "x.to_status") +
				" OR " + history.count("p", "p.order_id = x.order_id AND p.version = x.version - 1 AND p.to_status = x.from_status") +
				" <> 1 END)",
			what: "'order ' || " + orderNo("x.order_id") +
				" || ' has the step ' || CAST(x.version AS TEXT) || ' from ' || x.from_status || ' to ' || x.to_status" +
				" || ', which is illegal or does not follow the one before'",
		}),
		claim{
			table: "orders",
			wrong: order.IsOpen("x") + " AND (x.next_at IS NULL OR x.next_at < " + order.DueFrom + ")" +
				" OR x.id >= " + kept + " AND (" +
				history.count("h", "h.order_id = x.id AND h.version = x.version AND h.to_status = x.status") + " <> 1" +
				" OR " + history.count("h", "h.order_id = x.id AND h.version > x.version") + " > 0)",
			what: "'order ' || x.order_no || ' is ' || x.status || ' in version ' || CAST(x.version AS TEXT) || CASE WHEN " +
				order.IsOpen("x") +
				" AND (x.next_at IS NULL OR x.next_at < " + order.DueFrom +
				") THEN ', and nothing will ever close it' ELSE ', its history differs' END",
		})
}

// markClaims: a delivered notification has exactly one success mark, that of its last attempt.
// An attempt that ended after its lease was lost may be recorded as well, with a lower number;
// none succeeded after it.
func markClaims() []claim {
	var (
		last  = attempts.count("a", "a.delivery_id = x.id AND a.number = x.attempts AND a.class %s 'ok'")
		later = attempts.count("a", "a.delivery_id = x.id AND a.number > x.attempts AND a.class = 'ok'")
	)
	return []claim{{
		table: "deliveries", where: notify.Moves.In("x.status", notify.Delivered),
		wrong: "x.finished_at IS NULL OR x.next_at IS NOT NULL OR x.attempts < 1 OR x.last_class <> 'ok' OR " +
			fmt.Sprintf(last, "=", "=") + " > 1 OR " + fmt.Sprintf(last, "<>", "<>") + " > 0 OR " + later + " > 0",
		what: "'delivery ' || CAST(x.id AS TEXT) || ' of order ' || " + orderNo("x.subject_id") +
			" || ' is delivered, but its attempts differ'",
	}}
}

// eventClaims: every attempt belongs to a delivery, every delivery to an event, and every event
// of an order to a committed change of its status.
func eventClaims() []claim {
	return append(events.claims(claim{
		where: "x.type LIKE 'order.%'",
		wrong: "x.subject_id >= " + kept + " AND " +
			history.count("h", "h.order_id = x.subject_id AND h.version = x.version AND 'order.' || h.to_status = x.type") + " = 0",
		what: "'event ' || x.type || ' version ' || CAST(x.version AS TEXT) || ' of order ' || " + orderNo("x.subject_id") +
			" || ' is about a change that is not stored'",
	}), []claim{
		{
			table: "deliveries",
			// A subscriber's delivery is of a merchant's event.
			wrong: events.count("e",
				"e.id = x.event_id AND (x.to_subscriber OR e.merchant_id = x.recipient_id) AND e.subject_id = x.subject_id AND e.type = x.event_type") + " = 0" +
				" OR x.to_subscriber AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = x.recipient_id)",
			what: "'delivery ' || CAST(x.id AS TEXT) || ' has no event, or no recipient'",
		},
		{
			table: "notify_attempts",
			wrong: "x.delivery_id >= " + notified +
				" AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.id = x.delivery_id AND d.recipient_id = x.recipient_id)",
			what: "'attempt ' || CAST(x.id AS TEXT) || ' has no delivery'",
		},
	}...)
}

// orderNo returns an order's number, or its id if it has no row.
func orderNo(id string) string {
	return "coalesce((SELECT o.order_no FROM orders o WHERE o.id = " + id + "), 'id ' || CAST(" + id + " AS TEXT))"
}
