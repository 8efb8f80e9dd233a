// Package compensation has the names of package exception for the pages that still
// use these; it goes when the last of them is changed.
package compensation

import "backstop/internal/exception"

// The types of package exception.
type (
	Item       = exception.Item
	State      = exception.State
	Outcome    = exception.Outcome
	Settlement = exception.Settlement
	FieldError = exception.FieldError
	Query      = exception.Query
)

// Kinds and states, untyped.
const (
	UnknownOrder          = exception.UnknownOrder
	AmountMismatch        = exception.AmountMismatch
	CurrencyMismatch      = exception.CurrencyMismatch
	AccountMismatch       = exception.AccountMismatch
	LatePayment           = exception.LatePayment
	DuplicatePayment      = exception.DuplicatePayment
	UnknownRefund         = exception.UnknownRefund
	DisputeOpened         = exception.DisputeOpened
	UnknownEvent          = exception.UnknownEvent
	DecryptFailed         = exception.DecryptFailed
	Malformed             = exception.Malformed
	NotifyExhausted       = exception.NotifyExhausted
	StuckPaying           = exception.StuckPaying
	SubscriptionExhausted = exception.SubscriptionExhausted

	Opened   = "open"
	Assigned = "assigned"
	Resolved = "resolved"
	Ignored  = "ignored"

	RefundedElsewhere = exception.RefundedElsewhere
	AcceptedElsewhere = exception.AcceptedElsewhere
	NoEffect          = exception.NoEffect
)

// The values and functions of package exception.
var (
	Kinds     = exception.Kinds
	HeldKinds = exception.HeldKinds
	Outcomes  = exception.Outcomes
	Unsettled = exception.Moves.Open()
	States    = exception.Moves.Words()

	CarriesMoney = exception.CarriesMoney
	IsHeld       = exception.IsHeld
	Open         = exception.Open
	Detail       = exception.Detail
	Find         = exception.Find
	List         = exception.List
	Assign       = exception.Assign
	Settle       = exception.Settle
	Reopen       = exception.Reopen

	ErrNoException = exception.ErrNotFound
	ErrOver        = exception.ErrEnded
	ErrOpen        = exception.ErrOpen
)
