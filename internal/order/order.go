// Package order defines the order and the only function that changes its status.
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
	Paying  Status = "paying"  // a payment was started and may still succeed
	Closing Status = "closing" // timeout or cancel; the supplier has not answered yet
	Paid    Status = "paid"
	Failed  Status = "failed" // every attempt definitely failed
	Closed  Status = "closed"
)

// Moves lists every legal change of status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Order", Column: "orders.status",
	About: "Changed only by `order.Move`, by compare-and-set on the status and version that were read. " +
		"Each change writes a row of history and the notification in the same transaction. " +
		"From `failed` or `closed` to `paid`: two people accepted a late payment. " +
		"No callback does that: a late payment becomes the exception `late_payment`, and the order stays as it is.",
	Rows: []moves.Row[Status]{
		{
			Status: Pending, Initial: true, Open: true, To: []Status{Paying, Closing, Paid, Failed, Closed},
			Meaning: "Created; no payment was started.",
		},
		{
			Status: Paying, Open: true, To: []Status{Closing, Paid, Failed, Closed},
			Meaning: "A payment was started and may still succeed.",
		},
		{
			Status: Closing, Open: true, To: []Status{Paying, Paid, Failed, Closed},
			Meaning: "Timeout or cancel while a payment may still succeed; the supplier is queried, or waited for (`BACKSTOP_CLOSING_GRACE`).",
		},
		{Status: Paid, Meaning: "The payment was confirmed."},
		{Status: Failed, To: []Status{Paid}, Meaning: "Every attempt failed for good."},
		{
			Status: Closed, To: []Status{Paid},
			Meaning: "Timeout, cancel, or the supplier closed the last open payment (`supplier_closed`); reserved stock is released.",
		},
	},
}

// Statuses lists all statuses in the order of an order's life cycle.
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
	ByGrace    Cause = "grace_over" // closing has waited long enough for a supplier that cannot be queried
	ByQuery    Cause = "query"      // a query to the supplier
	Imported   Cause = "imported"
	// ByDecision means that operators decided it, by an approval.
	ByDecision Cause = "decided"
	// BySupplier means that the supplier reported that the payment can no longer be made.
	BySupplier Cause = "supplier_closed"
)

// Order is one order. Times are Unix µs by the database's clock.
type Order struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID              int64  `bun:"id,pk"`
	OrderNo         string `bun:"order_no"`
	MerchantID      int64  `bun:"merchant_id"`
	OutTradeNo      string `bun:"out_trade_no"`
	SupplierID      int64  `bun:"supplier_id"`
	Amount          int64  `bun:"amount"` // minor units of Currency
	Currency        string `bun:"currency"`
	Exponent        int    `bun:"exponent"` // decimal digits of the minor unit when the order was created
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
	NextAt          *int64 `bun:"next_at"` // when an open order is due; old rows of ended orders may have none
	PaidAt          *int64 `bun:"paid_at"`
	ClosedAt        *int64 `bun:"closed_at"`

	// The move to paid by a callback, which has no row of history; unset if there was no such
	// move.
	PaidFrom     Status `bun:"paid_from,nullzero"`
	PaidVersion  *int64 `bun:"paid_version"`
	PaidBy       string `bun:"paid_by,nullzero"` // the actor
	PaidCallback *int64 `bun:"paid_callback"`
	ConfirmedAt  *int64 `bun:"confirmed_at"` // when it was stored; PaidAt is by the supplier's clock
	// How often the supplier was queried in this status, and when last. Only the claim for a
	// query writes them, and the move that resets them.
	QueryTries int64  `bun:"query_tries"`
	QueriedAt  *int64 `bun:"queried_at"`
	// FeeRule is the version of the settings whose rules of fees apply. FeeAmount is
	// what the merchant pays by them, since the order is paid.
	FeeRule   *int64 `bun:"fee_rule"`
	FeeAmount int64  `bun:"fee_amount"`
	// RefundedAmount is the part of its payment that was refunded, in minor units. Only refunds write it.
	RefundedAmount int64 `bun:"refunded_amount"`
	// DisputedAmount is the part of its payment that buyers dispute or have won back, in minor
	// units. Only disputes write it.
	DisputedAmount int64 `bun:"disputed_amount"`
}

// RefundStatus returns how much of the payment was refunded: none, partial or full.
func (o *Order) RefundStatus() string {
	switch {
	case o.RefundedAmount == 0:
		return "none"
	case o.RefundedAmount < o.PaidAmount:
		return "partial"
	}
	return "full"
}

// Item is what an order reserves of one SKU.
type Item struct {
	bun.BaseModel `bun:"table:order_items,alias:oi"`

	OrderID  int64 `bun:"order_id,pk"`
	SKUID    int64 `bun:"sku_id,pk"`
	Quantity int64 `bun:"quantity"`
	Short    int64 `bun:"short"` // pieces that were gone when a late payment was accepted
}

// HistorySince is the name in settings of the id below which the histories of orders are past
// their retention and may have been deleted.
const HistorySince = "history_since"

// AllHistory selects the history of all orders: the rows of order_history, and the payments
// stored in orders themselves. The id of a payment is that of its callback. Do not use it in a
// correlated subquery: SQLite would scan all rows each time.
const AllHistory = "(SELECT id, order_id, version, from_status, to_status, cause, actor, source_id, source_kind, created_at FROM order_history" +
	" UNION ALL SELECT source_id, order_id, version, from_status, to_status, cause, actor, source_id, '" + SourceCallback +
	"', created_at FROM order_payments)"

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
	SourceID int64  `bun:"source_id"` // the callback, call or approval behind it; 0 = none
	// SourceKind is the kind of row that SourceID refers to; "" in old rows, where it is a
	// callback.
	SourceKind string `bun:"source_kind"`
	CreatedAt  int64  `bun:"created_at"`
}

// Kinds of sources of a change.
const (
	SourceCallback = "callback"
	SourceCall     = "call" // of supplier_calls
	SourceApproval = "approval"
)
