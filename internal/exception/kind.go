package exception

import "slices"

// Names of the kinds of exceptions.
const (
	UnknownOrder     = "unknown_order"
	AmountMismatch   = "amount_mismatch" // over or under; the difference is in the detail
	CurrencyMismatch = "currency_mismatch"
	AccountMismatch  = "account_mismatch"
	LatePayment      = "late_payment"
	DuplicatePayment = "duplicate_payment"
	UnknownRefund    = "unknown_refund"
	RefundFailed     = "refund_failed"   // a refund that a person must look at: stuck or returned
	PayoutStuck      = "payout_stuck"    // nobody can say whether it was paid, or it has no schedule
	PayoutReturned   = "payout_returned" // it succeeded, and the money came back
	// PayoutAfterReversal means that a payout arrived after its money was booked back.
	PayoutAfterReversal = "payout_after_reversal"
	SupplierShort       = "supplier_short" // our account there has too little money for a payout or refund
	DisputeOpened       = "dispute_opened"
	Complaint           = "complaint"     // a buyer complained to the supplier; no money moves
	UnknownEvent        = "unknown_event" // an authentic message of a type unknown to the adapter
	DecryptFailed       = "decrypt_failed"
	Malformed           = "malformed"
	NotifyExhausted     = "notify_exhausted"
	StuckPaying         = "stuck_paying"
	// SubscriptionExhausted means that a subscriber was not notified. This puts none of the
	// merchant's money at risk.
	SubscriptionExhausted = "subscription_exhausted"
	// CompensationDead means that a compensation ran out of tries.
	CompensationDead = "compensation_dead"
	// StockShort means that late money was accepted for goods that are no longer in stock.
	StockShort = "stock_short"
	// BooksDiffer means that a figure or an invariant does not match the rows.
	BooksDiffer = "books_differ"
)

// HeldKinds are the kinds with an amount that a supplier holds and that paid no order.
var HeldKinds = []string{AmountMismatch, CurrencyMismatch, AccountMismatch, DuplicatePayment, LatePayment, UnknownOrder}

// SuspenseKinds are those HeldKinds whose money is booked in suspense once it was certainly
// paid. Of money on a wrong account the owner is unknown.
var SuspenseKinds = []string{AmountMismatch, CurrencyMismatch, DuplicatePayment, LatePayment, UnknownOrder}

// PaidKinds are the kinds about a payment that end once that payment is booked for an order.
var PaidKinds = []string{UnknownOrder, AmountMismatch, CurrencyMismatch, AccountMismatch, UnknownEvent, Malformed}

// moneyKinds are those whose end decides about an amount that a supplier holds or
// demands.
var moneyKinds = slices.Concat(HeldKinds, []string{
	DisputeOpened, UnknownRefund, RefundFailed, PayoutStuck, PayoutReturned,
	PayoutAfterReversal, SupplierShort,
})

// Kinds are the names of all kinds, those about money first.
var Kinds = slices.Concat(moneyKinds, []string{
	NotifyExhausted, StuckPaying, CompensationDead, StockShort, BooksDiffer, Complaint,
	UnknownEvent, SubscriptionExhausted, DecryptFailed, Malformed,
})

// AgainKinds are those of what ran out of tries and can be run again.
var AgainKinds = []string{CompensationDead, NotifyExhausted}

// RunsAgain reports whether what exceptions of the kind are about can be run again.
func RunsAgain(kind string) bool { return slices.Contains(AgainKinds, kind) }

// CarriesMoney reports whether ending an exception of the kind decides about money.
func CarriesMoney(kind string) bool { return slices.Contains(moneyKinds, kind) }

// InSuspense reports whether the money of the kind is booked in suspense.
func InSuspense(kind string) bool { return slices.Contains(SuspenseKinds, kind) }

// IsHeld reports whether the supplier holds the amount of an exception of the kind.
func IsHeld(kind string) bool { return slices.Contains(HeldKinds, kind) }
