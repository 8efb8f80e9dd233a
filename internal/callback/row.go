package callback

import (
	"slices"

	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/supplier"
)

// Row is one callback as the console lists it.
type Row struct {
	ID         int64          `bun:"id"`
	Supplier   string         `bun:"supplier"`
	ReceivedAt int64          `bun:"received_at"` // Unix µs
	RemoteAddr string         `bun:"remote_addr"`
	Outcome    string         `bun:"outcome"`
	OrderNo    string         `bun:"order_no"` // the supplier's reference
	OrderID    int64          `bun:"order_id"` // 0 = the reference is no order of ours
	Steps      supplier.Steps `bun:"steps"`
	// Minor is what a message about a payment says was paid; Currency "" = it is not known.
	Minor    int64  `bun:"-"`
	Currency string `bun:"-"`
}

// refusedOutcomes are the outcomes of rows in refused_callbacks.
var refusedOutcomes = []string{UnknownSupplier, WrongAddress, BadSignature, Unparsable, AdapterFailed}

// Outcomes lists all outcomes of recorded callbacks.
var Outcomes = slices.Concat(payment.Outcomes, exception.Kinds, refusedOutcomes)

// IsRefusal reports whether only refused callbacks have this outcome.
func IsRefusal(outcome string) bool { return slices.Contains(refusedOutcomes, outcome) }
