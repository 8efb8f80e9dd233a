// Package suppliertest is the conformance suite for supplier adapters: a genuine message is
// parsed exactly, and no other message is accepted.
//
// An adapter's test describes how its supplier builds a message (Suite) and calls Run. The
// suite then alters, repeats, duplicates and delays that message. Abilities and RunAbilities do
// the same for the answers to our own calls.
package suppliertest

import (
	"testing"
	"time"

	"backstop/internal/supplier"
)

// Now is the time at which the suite's messages arrive. It is fixed so that the files in
// testdata do not change.
var Now = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// Change is how one message differs from the suite's genuine one. Zero values change nothing.
type Change struct {
	OrderRef string
	TradeNo  string
	// Amount replaces the number verbatim: unquoted in JSON if the supplier sends a number,
	// escaped in a form.
	Amount string
	// Status is the supplier's own status.
	Status string
	// Account replaces the account that the message is for (application, seller or merchant
	// number, whichever Callback.Identity contains).
	Account string
	// RefundNo is our number of the refund.
	RefundNo string
	// PayoutNo is our number of the payout.
	PayoutNo string
	// SignedAt is the signed time, Now where zero. A scheme without one ignores it.
	SignedAt time.Time
	// Duplicate adds the order number's parameter or JSON key again with another value, and
	// signs the result, as a careless supplier would.
	Duplicate bool
	// Without names a part left out of an answer: "OrderRef", "TradeNo", "Amount", "Currency"
	// or "Status".
	Without string
	// Tamper alters the text of the finished signature before it is inserted.
	Tamper func(signature string) string
}

// At returns SignedAt, or Now.
func (c Change) At() time.Time {
	if c.SignedAt.IsZero() {
		return Now
	}
	return c.SignedAt
}

// Suite describes one adapter and the messages of its supplier.
type Suite struct {
	Adapter supplier.Adapter
	// Stranger is an adapter of the same kind with other keys.
	Stranger supplier.Adapter
	// Message builds a correctly signed message about a successful payment, with the change
	// applied. It must be safe for concurrent use.
	Message func(Change) *supplier.Request
	// Want is the content of the unchanged message.
	Want supplier.Callback
	// OtherAmount is another amount in the supplier's notation, OtherMinor its value in minor
	// units.
	OtherAmount string
	OtherMinor  int64
	// OtherStatus is a known status with another meaning than Want.Status.
	OtherStatus string
	// Harmless are statuses that move nothing and open no exception.
	Harmless []string
	// OddAmounts are further texts that this adapter must not accept as amounts, in addition to
	// those that no adapter may accept.
	OddAmounts []string
	// SignatureHeaders are the headers with the signature and its parameters. Empty if the
	// signature is a parameter.
	SignatureHeaders []string
	// Window is the tolerated difference of the signed time from Now; 0 = no signed time.
	Window time.Duration
	// Secrets are the keys in the adapter's config. None may appear in a trace, an error or a
	// response.
	Secrets []string
	// Replies are the responses to every result, byte for byte.
	Replies map[supplier.Result]supplier.Reply
}

// Run runs every claim of the suite as a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) { c.check(&probe{reporter: t, Suite: s}) })
	}
}

// reporter is the part of testing.TB that claims need. It is a separate interface so that the
// suite's test can watch a claim fail.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

type claim struct {
	name  string
	check func(*probe)
}

// claims are all claims of the suite.
var claims = []claim{
	{"GenuineMessageIsReadExactly", genuineIsRead},
	{"WhatOperatorsNeedIsDeclared", neededIsDeclared},
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
