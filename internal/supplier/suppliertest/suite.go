// Package suppliertest is the conformance suite of supplier adapters: a genuine
// message is read exactly, and no other one is accepted.
//
// An adapter's test describes how its supplier builds a message (Suite) and
// calls Run. The suite then alters, repeats, doubles and delays that message. Abilities and
// RunAbilities do the same for the answers to our own calls.
package suppliertest

import (
	"testing"
	"time"

	"backstop/internal/supplier"
)

// Now is the moment at which the suite's messages arrive. It is fixed, so that
// the files in testdata stay as they are.
var Now = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// Change is how one message differs from the suite's genuine one. A zero value leaves
// its part as it is.
type Change struct {
	OrderRef string
	TradeNo  string
	// Amount takes the place of the number, as it is: unquoted in JSON where the
	// supplier sends a number, escaped in a form.
	Amount string
	// Status is the supplier's own word for what happened.
	Status string
	// Account replaces whose account the message is for (application, seller or
	// merchant number, whichever Callback.Identity holds).
	Account string
	// SignedAt is the signed time, Now where zero. A scheme without one ignores it.
	SignedAt time.Time
	// Duplicate adds the order number's parameter or JSON key once more with another
	// value, and signs the whole as a careless supplier would.
	Duplicate bool
	// Without names a part that is left out of an answer: "OrderRef", "TradeNo", "Amount",
	// "Currency" or "Status".
	Without string
	// Tamper alters the finished signature's text before it is put in its place.
	Tamper func(signature string) string
}

// At is SignedAt, or Now.
func (c Change) At() time.Time {
	if c.SignedAt.IsZero() {
		return Now
	}
	return c.SignedAt
}

// Suite describes one adapter and the messages of its supplier.
type Suite struct {
	Adapter supplier.Adapter
	// Stranger is an adapter of the same kind that holds other keys.
	Stranger supplier.Adapter
	// Message builds a well-signed message about a payment that was made, with the
	// change. It must be safe for concurrent use.
	Message func(Change) *supplier.Request
	// Want is the content of the message without a change.
	Want supplier.Callback
	// OtherAmount is another amount as the supplier writes it, OtherMinor its
	// value in minor units.
	OtherAmount string
	OtherMinor  int64
	// OtherStatus is a known word for something else than Want.Status.
	OtherStatus string
	// Harmless are words that move nothing and open no exception.
	Harmless []string
	// OddAmounts are further texts that must not count as an amount here, beside
	// those that no supplier may send.
	OddAmounts []string
	// SignatureHeaders are the headers that carry the signature and what belongs
	// to it. Empty where the signature is a parameter.
	SignatureHeaders []string
	// Window is how far the signed time may lie from Now; 0 where none is signed.
	Window time.Duration
	// Secrets are the keys in the adapter's config. None may show in a trace, an
	// error or an answer.
	Secrets []string
	// Replies is the answer to every result, byte for byte.
	Replies map[supplier.Result]supplier.Reply
}

// Run checks every claim of the suite as a test of its own.
func Run(t *testing.T, s Suite) {
	t.Helper()
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) { c.check(&probe{reporter: t, Suite: s}) })
	}
}

// reporter is the part of testing.TB that claims need. It is an interface of our
// own so that the suite's test can watch a claim fail.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

type claim struct {
	name  string
	check func(*probe)
}

// claims is everything that the suite checks.
var claims = []claim{
	{"GenuineMessageIsReadExactly", genuineIsRead},
	{"AlteredMessageIsRefusedOrMeansTheSame", alteredBytes},
	{"TamperedSignatureIsRefused", tamperedSignature},
	{"AnotherKeyIsRefused", anotherKey},
	{"SignedTimeIsHeldOnBothSides", signedTime},
	{"DoubledFieldIsRefusedThoughSigned", doubledField},
	{"DoubledSignatureHeaderIsRefusedOrMeansTheSame", doubledHeader},
	{"OddNumberIsNoPayment", oddNumbers},
	{"AmountAndOrderAreThoseOfTheMessage", changedFields},
	{"HarmlessWordMovesNothing", harmlessWords},
	{"UnknownWordIsNeverSilent", unknownWord},
	{"EventKeyNamesTheFact", eventKey},
	{"AnotherAccountIsNotOurs", anotherAccount},
	{"ReplyIsExact", replies},
	{"ParseIsSafeForConcurrentUse", concurrentUse},
}
