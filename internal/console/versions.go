package console

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/exception"
)

// Versioned is a kind of object that has a version: it changes with whatever the object's page
// shows, not only with the object. Its parts are queries of texts, that of the object itself first.
// ?0 is its id, which is 0 where its number identifies it; ?1 is its number.
type Versioned []string

// versionRows bounds the rows of each part: the newest.
const versionRows = 100

// Objects that have a version.
var (
	OrderVersion = Versioned{
		rows("orders AS o WHERE o.order_no = ?1", "o.id",
			"o.version", "o.status", "o.close_tries", "o.query_tries", "COALESCE(o.next_at, 0)", "o.refund_status",
			"o.refunded_amount", "o.disputed_amount"),
		rows("deliveries AS d WHERE d.subject_id = "+orderID, "d.id", "d.id", "d.status", "d.attempts", "COALESCE(d.next_at, 0)"),
		rows("callbacks AS c LEFT JOIN callback_repeats AS cr ON cr.callback_id = c.id WHERE c.order_no = ?1", "c.id",
			"c.id", "COALESCE(cr.seen, 0)"),
		rows("supplier_calls AS sc WHERE sc.order_id = "+orderID, "sc.id", "sc.id", "sc.state"),
		rows("exceptions AS x WHERE x.order_no = ?1", "x.id", "x.id", "x.version", "x.state", "x.updated_at"),
		rows("refunds AS rf WHERE rf.order_id = "+orderID+" AND rf.order_id <> 0", "rf.id", "rf.id", "rf.version"),
		rows("disputes AS dp WHERE dp.order_id = "+orderID+" AND dp.order_id <> 0", "dp.id", "dp.id", "dp.version"),
		rows("approvals AS ap WHERE ap.order_no = ?1 AND ap.order_no <> ''", "ap.id", "ap.id", "ap.state", "ap.tries"),
		rows("breakers AS b WHERE b.owner_id = (SELECT o.merchant_id FROM orders AS o WHERE o.order_no = ?1)", "b.owner_id",
			"b.state", "b.generation"),
		actsOn("order"),
	}
	RefundVersion = Versioned{
		rows("refunds AS rf WHERE rf.refund_no = ?1", "rf.id",
			"rf.version", "COALESCE(rf.last_call_at, 0)", "COALESCE(rf.short_at, 0)", "rf.approval_id"),
		tasksOf("refund"), deliveriesOfFund("refund"), openAbout,
		rows("approvals AS ap WHERE ap.id = (SELECT f.approval_id FROM refunds AS f WHERE f.refund_no = ?1)", "ap.id",
			"ap.id", "ap.state", "ap.tries"),
	}
	PayoutVersion = Versioned{
		rows("payouts AS po WHERE po.payout_no = ?1", "po.id",
			"po.version", "COALESCE(po.last_call_at, 0)", "COALESCE(po.short_at, 0)", "po.approval_id"),
		tasksOf("payout"), deliveriesOfFund("payout"), openAbout, approvalsOf("payout"),
		rows("fund_steps AS fs WHERE fs.payout_id = "+fundID("payout"), "fs.id", "fs.step", "fs.version"),
	}
	DisputeVersion = Versioned{
		rows("disputes AS dp WHERE dp.dispute_no = ?1", "dp.id", "dp.version", "dp.order_id"),
		rows("dispute_evidence AS de WHERE de.dispute_id = "+fundID("dispute"), "de.id", "de.id"),
		deliveriesOfFund("dispute"), openAbout,
	}
	ExceptionVersion = Versioned{
		rows("exceptions AS x WHERE x.id = ?0", "x.id", "x.version", "x.state", "x.updated_at", "x.seen", "x.assignee"),
		approvalsOf(ExceptionObject), actsOn(ExceptionObject),
		rows("supplier_calls AS sc WHERE sc.order_id = "+
			"(SELECT x.order_id FROM exceptions AS x WHERE x.id = ?0 AND x.order_id <> 0)", "sc.id", "sc.id", "sc.state"),
	}
	ApprovalVersion = Versioned{
		rows("approvals AS ap WHERE ap.id = ?0", "ap.id", "ap.state", "ap.tries", "COALESCE(ap.live_at, 0)", "COALESCE(ap.done_at, 0)"),
	}
	// BatchVersion does not change with how far a batch is.
	BatchVersion = Versioned{
		rows("batches AS ba WHERE ba.id = ?0", "ba.id", "ba.version"),
		rows("approvals AS ap WHERE ap.id = (SELECT b.approval_id FROM batches AS b WHERE b.id = ?0)", "ap.id", "ap.id", "ap.state"),
	}
	// MerchantVersion does not change with each notification that is delivered.
	MerchantVersion = Versioned{
		rows("merchants AS m WHERE m.code = ?1", "m.id", "m.updated_at"),
		rows("breakers AS b WHERE b.owner_id = "+merchantID, "b.owner_id", "b.state", "b.generation", "b.open_until"),
		rows("endpoint_health AS eh WHERE eh.recipient_id = "+merchantID, "eh.endpoint",
			"eh.endpoint", "eh.failures", "COALESCE(eh.disabled_at, 0)"),
		rows("report_unnotified AS ru WHERE ru.merchant_id = "+merchantID, "ru.currency", "ru.currency", "ru.orders", "ru.amount"),
		approvalsOf("merchant"), actsOn("merchant"),
	}
)

const (
	orderID    = "(SELECT o.id FROM orders AS o WHERE o.order_no = ?1)"
	merchantID = "(SELECT m.id FROM merchants AS m WHERE m.code = ?1)"
)

// fundID is the id of a refund, payout or dispute.
func fundID(kind string) string {
	return "(SELECT f.id FROM " + kind + "s AS f WHERE f." + kind + "_no = ?1)"
}

// rows is a part: the columns of some rows, the newest first.
func rows(from, newest string, columns ...string) string {
	return fmt.Sprintf("SELECT * FROM (SELECT '%s ' || %s AS part FROM %s ORDER BY %s DESC LIMIT %d) AS t",
		newest, strings.Join(columns, " || ' ' || "), from, newest, versionRows)
}

func tasksOf(kind string) string {
	return rows("compensations AS cp WHERE cp.subject_id = "+fundID(kind)+" AND cp.subject_kind = '"+kind+"'", "cp.id",
		"cp.id", "cp.state", "cp.attempts", "COALESCE(cp.next_at, 0)")
}

func deliveriesOfFund(kind string) string {
	return rows("deliveries AS d WHERE d.subject_id = "+fundID(kind), "d.id", "d.id", "d.status", "d.attempts")
}

// openAbout are the open exceptions about a refund, payout or dispute.
var openAbout = rows("exceptions AS x WHERE x.subject = ?1 AND "+
	exception.Moves.In("x.state", exception.Moves.Open()...), "x.id", "x.id", "x.version")

func approvalsOf(object string) string {
	return rows("approvals AS ap WHERE ap.object = '"+object+"' AND ap.object_id = "+objectID(object), "ap.id",
		"ap.id", "ap.state", "ap.tries")
}

func actsOn(object string) string {
	return rows("audit AS au WHERE au.object = '"+object+"' AND au.object_id = "+objectID(object), "au.number", "au.number")
}

// objectID is how approvals and the audit name an object.
func objectID(object string) string {
	if object == ExceptionObject {
		return "CAST(?0 AS TEXT)"
	}
	return "?1"
}

// Version reads the version of an object by one query. Errors: act.ErrNotFound.
func (b *Reader) Version(ctx context.Context, of Versioned, id int64, no string) (string, error) {
	var parts []string
	if err := b.db.Read.NewRaw(strings.Join(of, " UNION ALL "), id, no).Scan(ctx, &parts); err != nil {
		return "", fmt.Errorf("read the version of %s: %w", no, err)
	}
	if len(parts) == 0 {
		return "", act.ErrNotFound
	}
	sum := fnv.New64a()
	for _, part := range parts {
		sum.Write([]byte(part + "\n"))
	}
	return strconv.FormatUint(sum.Sum64(), 36), nil
}
