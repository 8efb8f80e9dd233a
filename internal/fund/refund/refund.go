// Package refund implements refunds as a state machine whose steps are all stored, so that no
// refund is paid twice or lost. A refund's money is held from the request on; only success, or
// a supplier status that is listed as final, moves it on. While the outcome is unknown the money
// stays held, and the supplier is queried under the same number.
package refund

import (
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// Status is the status of a refund.
type Status string

// Statuses, see Moves.
const (
	Requested Status = "requested"
	Approved  Status = "approved"
	Rejected  Status = "rejected"
	Cancelled Status = "cancelled"
	Submitted Status = "submitted"
	Unknown   Status = "unknown"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Returned  Status = "returned"
)

// Moves lists every legal change of a refund's status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Refund", Column: "refunds.status",
	About: "Money on its way back to a buyer, held until the supplier has decided. Each change is a compare-and-set on status and version under the lock of the order, " +
		"with its history, its entries (`refund:<id>:…`) and its notification in the same transaction.",
	Rows: []moves.Row[Status]{
		{
			Status: Requested, Initial: true, Open: true, NeedsPerson: true, To: []Status{Approved, Rejected, Cancelled},
			Meaning: "Requested, and its money is held; waiting for two people's decision.",
		},
		{
			Status: Approved, Initial: true, Open: true, To: []Status{Submitted, Cancelled, Failed},
			Meaning: "To be sent to the supplier: approved, or within the merchant's limits.",
		},
		{Status: Rejected, Meaning: "Rejected, not approved in time, or stopped by a dispute of its order; its money is back."},
		{Status: Cancelled, Meaning: "The merchant cancelled it before it was sent to the supplier; its money is back."},
		{
			Status: Submitted, Open: true, To: []Status{Unknown, Succeeded, Failed},
			Meaning: "Sent to the supplier, or about to be: the supplier may pay it.",
		},
		{
			Status: Unknown, Open: true, To: []Status{Succeeded, Failed},
			Meaning: "No clear answer: its money stays held, and the supplier is queried under the same number.",
		},
		{
			Status: Succeeded, Initial: true, To: []Status{Returned},
			Meaning: "The supplier paid it. A refund made directly at the supplier starts here.",
		},
		{
			Status:  Failed,
			Meaning: "The supplier's status is listed as final: it was not made and never will be; or a dispute of its order stopped it before it was sent. Its money is back, and another try is a new refund.",
		},
		{Status: Returned, Meaning: "It succeeded, but its money came back later."},
	},
}

// dead are the statuses of refunds that use up nothing of their payment.
var dead = []Status{Rejected, Cancelled, Failed, Returned}

// Refund is one refund. Moments are Unix microseconds by the database's clock, amounts minor
// units of Currency.
type Refund struct {
	bun.BaseModel `bun:"table:refunds,alias:rf"`

	ID               int64  `bun:"id,pk"`
	RefundNo         string `bun:"refund_no"`
	OrderID          int64  `bun:"order_id"` // 0 = money without an order
	OrderNo          string `bun:"order_no"`
	AttemptID        int64  `bun:"attempt_id"`
	SupplierID       int64  `bun:"supplier_id"`
	AccountID        int64  `bun:"account_id"`
	SupplierRef      string `bun:"supplier_ref"`
	TradeNo          string `bun:"trade_no"`
	TradeAmount      int64  `bun:"trade_amount"`
	MerchantID       int64  `bun:"merchant_id"` // 0 = money without a merchant
	OutRefundNo      string `bun:"out_refund_no"`
	Amount           int64  `bun:"amount"`
	Currency         string `bun:"currency"`
	FeeReturned      int64  `bun:"fee_returned"`
	CostReturned     int64  `bun:"cost_returned"`
	HeldRef          string `bun:"held_ref"` // ref of the entry that held money without an order
	RequestDigest    string `bun:"request_digest"`
	NotifyURL        string `bun:"notify_url"`
	Status           Status `bun:"status"`
	Version          int64  `bun:"version"`
	SupplierRefundNo string `bun:"supplier_refund_no"`
	Reason           string `bun:"reason"`
	ByRule           bool   `bun:"by_rule"`
	ApprovalID       int64  `bun:"approval_id"` // 0 = none
	Adopted          string `bun:"adopted"`     // "" = made by Backstop, not at the supplier
	SplitFrom        int64  `bun:"split_from"`  // the adopted refund whose entry has its amount; 0 = its own
	FirstCallAt      *int64 `bun:"first_call_at"`
	LastCallAt       *int64 `bun:"last_call_at"`
	AcceptedAt       *int64 `bun:"accepted_at"` // when the supplier said that it has it; it may fail later
	ShortAt          *int64 `bun:"short_at"`    // since when our account at the supplier is short of funds
	ShortLast        bool   `bun:"short_last"`  // the last call was answered so
	CreatedAt        int64  `bun:"created_at"`
	FinishedAt       *int64 `bun:"finished_at"`
}

// Errors of requests, besides *ExceedsError, *act.FieldError and those of the ledger.
var (
	ErrNotFound = errors.New("no such refund")
	// ErrConflict means that the merchant reused an out_refund_no with different content (409
	// idempotency_conflict).
	ErrConflict = errors.New("out_refund_no was already used for a refund with different content: use a new one")
	// ErrNotRefundable means that the order is not paid or its refund window is over (409).
	ErrNotRefundable = errors.New("the order cannot be refunded: it is not paid, or its refund window is over")
	// ErrStarted means that the refund may have reached the supplier (409 refund_started).
	ErrStarted = errors.New("the refund has been sent to the supplier and cannot be cancelled")
	// ErrNotOwn means that an operator proposed the refund, or the supplier made it (403 not_yours).
	ErrNotOwn = errors.New("the refund was not requested by you: only the operators of the platform can withdraw it")
	// ErrSupplier means that the supplier cannot be used at the moment (503).
	ErrSupplier = errors.New("the supplier cannot be used at the moment: try again later")
)

// ExceedsError means that the refund exceeds what is left of the payment (409 refund_exceeds).
type ExceedsError struct {
	Refundable int64 // minor units
	Currency   string
}

func (e *ExceedsError) Error() string {
	return fmt.Sprintf("the amount exceeds what is left of the payment: at most %d can be refunded (minor units)", e.Refundable)
}

// Number returns a refund's number at its supplier: only letters and digits, which every kind
// accepts, and never reused.
func Number(id int64) string { return "R" + strconv.FormatInt(id, 10) }

// key returns the id as entries use it.
func (r *Refund) key() string { return strconv.FormatInt(r.ID, 10) }
