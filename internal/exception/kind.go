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
	DisputeOpened    = "dispute_opened"
	UnknownEvent     = "unknown_event" // an authentic message of a type that is not in the adapter's table
	DecryptFailed    = "decrypt_failed"
	Malformed        = "malformed"
	NotifyExhausted  = "notify_exhausted"
	StuckPaying      = "stuck_paying"
	// SubscriptionExhausted: a subscriber was not notified. The merchant's money is
	// not at risk by that.
	SubscriptionExhausted = "subscription_exhausted"
	// CompensationDead: what had to be done again ran out of tries.
	CompensationDead = "compensation_dead"
	// StockShort: late money was accepted for goods that are gone.
	StockShort = "stock_short"
	// BooksDiffer: a figure or an invariant does not agree with the rows.
	BooksDiffer = "books_differ"
)

// HeldKinds are the kinds whose amount a supplier holds and no order has taken.
var HeldKinds = []string{AmountMismatch, CurrencyMismatch, AccountMismatch, DuplicatePayment, LatePayment, UnknownOrder}

// SuspenseKinds are those of them whose money is booked in suspense when it was paid for
// certain: of a wrong account nobody knows whose money it is.
var SuspenseKinds = []string{AmountMismatch, CurrencyMismatch, DuplicatePayment, LatePayment, UnknownOrder}

// moneyKinds are those whose end decides about an amount that a supplier holds or
// demands.
var moneyKinds = slices.Concat(HeldKinds, []string{DisputeOpened, UnknownRefund})

// Kinds are the names of all kinds, those about money first.
var Kinds = slices.Concat(moneyKinds, []string{NotifyExhausted, StuckPaying, CompensationDead, StockShort, BooksDiffer, UnknownEvent, SubscriptionExhausted, DecryptFailed, Malformed})

// CarriesMoney reports whether ending an exception of the kind decides about money.
func CarriesMoney(kind string) bool { return slices.Contains(moneyKinds, kind) }

// InSuspense reports whether the money of the kind is booked in suspense.
func InSuspense(kind string) bool { return slices.Contains(SuspenseKinds, kind) }

// IsHeld reports whether the supplier holds the amount of an exception of the kind.
func IsHeld(kind string) bool { return slices.Contains(HeldKinds, kind) }
