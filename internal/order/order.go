// Package order holds the order, and the only function that changes its status.
package order

import (
	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// Status is the status of an order.
type Status string

// The six statuses (docs/states.md).
const (
	Pending Status = "pending" // created, no payment started
	Paying  Status = "paying"  // a payment was started: money may come
	Closing Status = "closing" // timeout or cancel; the supplier has not answered yet
	Paid    Status = "paid"
	Failed  Status = "failed" // every attempt definitely failed
	Closed  Status = "closed"
)

// Moves is every legal change of status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Order", Column: "orders.status",
	About: "Changed by `order.Move` alone, by compare-and-set on the status and version that were read. " +
		"Each change writes a row of history and the notification in the same transaction. " +
		"`failed` and `closed` to `paid` is the acceptance of late money by two people. " +
		"No callback takes that way: money that comes late is the exception `late_payment`, and the order stays as it is.",
	Rows: []moves.Row[Status]{
		{
			Status: Pending, Initial: true, Open: true, To: []Status{Paying, Closing, Paid, Failed, Closed},
			Meaning: "Created; no payment was started.",
		},
		{
			Status: Paying, Open: true, To: []Status{Closing, Paid, Failed, Closed},
			Meaning: "A payment was started: money may come.",
		},
		{
			Status: Closing, Open: true, To: []Status{Paying, Paid, Failed, Closed},
			Meaning: "Timeout or cancel while money may still come; the supplier is asked, or waited for (`BACKSTOP_CLOSING_GRACE`).",
		},
		{Status: Paid, Meaning: "The money is there."},
		{Status: Failed, To: []Status{Paid}, Meaning: "Every attempt failed for good."},
		{
			Status: Closed, To: []Status{Paid},
			Meaning: "Timeout, cancel, or the supplier closed the last open payment (`supplier_closed`); what was reserved is free again.",
		},
	},
}

// Statuses lists all statuses in the order of an order's life.
var Statuses = Moves.Statuses()

// Open reports whether the order may still become paid, failed or closed.
func (s Status) Open() bool { return Moves.Of(s).Open }

// Cause is why a status changed; every row of the history has one.
type Cause string

// Causes of a change.
const (
	Created    Cause = "created"
	PayStarted Cause = "pay_started" // the merchant started a payment
	ByCallback Cause = "callback"
	ByTimeout  Cause = "timeout"
	ByCancel   Cause = "cancel"
	ByGrace    Cause = "grace_over" // closing waited long enough for a supplier that cannot be queried
	ByQuery    Cause = "query"      // the supplier was asked
	Imported   Cause = "imported"
	// ByDecision: operators decided so, by an approval.
	ByDecision Cause = "decided"
	// BySupplier: the supplier reported that the payment can never be made any more.
	BySupplier Cause = "supplier_closed"
)

// Order is one order. Moments are Unix microseconds by the database's clock.
type Order struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID              int64  `bun:"id,pk"`
	OrderNo         string `bun:"order_no"`
	MerchantID      int64  `bun:"merchant_id"`
	OutTradeNo      string `bun:"out_trade_no"`
	SupplierID      int64  `bun:"supplier_id"`
	Amount          int64  `bun:"amount"` // minor units of Currency
	Currency        string `bun:"currency"`
	Exponent        int    `bun:"exponent"` // decimal digits of the minor unit when the order was made
	Subject         string `bun:"subject"`
	NotifyURL       string `bun:"notify_url"` // empty = the merchant's endpoints
	RequestDigest   string `bun:"request_digest"`
	Status          Status `bun:"status"`
	Version         int64  `bun:"version"` // 1 at creation, + 1 for each change of status
	SupplierTradeNo string `bun:"supplier_trade_no"`
	PaidAmount      int64  `bun:"paid_amount"`
	CloseReason     string `bun:"close_reason"`
	CloseTries      int64  `bun:"close_tries"`
	HasItems        bool   `bun:"has_items"`
	CreatedAt       int64  `bun:"created_at"`
	ExpiresAt       int64  `bun:"expires_at"`
	NextAt          *int64 `bun:"next_at"` // when the order is due, while it is open; rows of before may have none when it is over
	PaidAt          *int64 `bun:"paid_at"`
	ClosedAt        *int64 `bun:"closed_at"`

	// The move to paid by a callback, which has no row of history; none of them is set
	// where there was no such move.
	PaidFrom     Status `bun:"paid_from,nullzero"`
	PaidVersion  *int64 `bun:"paid_version"`
	PaidBy       string `bun:"paid_by,nullzero"` // the actor
	PaidCallback *int64 `bun:"paid_callback"`
	ConfirmedAt  *int64 `bun:"confirmed_at"` // when it was stored; PaidAt is by the supplier's clock
	// How often the supplier was asked in this status, and when last. Only the claim for it
	// writes them, and the move that begins anew.
	QueryTries int64  `bun:"query_tries"`
	AskedAt    *int64 `bun:"asked_at"`
}

// Item is what one order reserves of one SKU.
type Item struct {
	bun.BaseModel `bun:"table:order_items,alias:oi"`

	OrderID  int64 `bun:"order_id,pk"`
	SKUID    int64 `bun:"sku_id,pk"`
	Quantity int64 `bun:"quantity"`
	Short    int64 `bun:"short"` // pieces of it that were gone when late money was accepted
}

// HistorySince is the name in settings of the id before which the histories of orders are
// past their retention: the clean-up may have removed them.
const HistorySince = "history_since"

// AllHistory is the history of all orders for a query: the rows of order_history and the
// payments that orders themselves say. The id of a payment is that of its callback. Not for
// a correlated subquery: SQLite would go through all rows each time.
const AllHistory = "(SELECT id, order_id, version, from_status, to_status, cause, actor, source_id, source_kind, created_at FROM order_history" +
	" UNION ALL SELECT source_id, order_id, version, from_status, to_status, cause, actor, source_id, '" + SourceCallback + "', created_at FROM order_payments)"

// History is one change of status.
type History struct {
	bun.BaseModel `bun:"table:order_history,alias:oh"`

	ID       int64  `bun:"id,pk"`
	OrderID  int64  `bun:"order_id"`
	Version  int64  `bun:"version"`
	From     Status `bun:"from_status"`
	To       Status `bun:"to_status"`
	Cause    Cause  `bun:"cause"`
	Actor    string `bun:"actor"`     // "supplier:wx-main", "merchant:m1", "clock", "operator:li"
	SourceID int64  `bun:"source_id"` // the callback, call or approval behind it, 0 = none
	// SourceKind is what SourceID is of; rows of before have none, and are of callbacks.
	SourceKind string `bun:"source_kind"`
	CreatedAt  int64  `bun:"created_at"`
}

// What a change has as its source.
const (
	SourceCallback = "callback"
	SourceCall     = "call" // of supplier_calls
	SourceApproval = "approval"
)
