package stripe

import (
	"slices"
	"strings"

	"backstop/internal/supplier"
)

// words is what Stripe's words mean: the types of events (docs.stripe.com/api/events/types),
// and the statuses of objects behind the object's kind ("refund.pending"), which is how
// Stripe names the events of a change of status as well.
var words = supplier.Words{
	// Statuses of intents: docs.stripe.com/payments/paymentintents/lifecycle.
	"payment_intent.succeeded": {Status: supplier.Paid},
	// The buyer may try another card on the same intent.
	"payment_intent.payment_failed": {Status: supplier.Failed},
	"payment_intent.canceled":       {Status: supplier.Closed},

	"checkout.session.paid":                    {Status: supplier.Paid},
	"checkout.session.unpaid":                  {Status: supplier.Other},
	"checkout.session.no_payment_required":     {Status: supplier.Other},
	"checkout.session.async_payment_succeeded": {Status: supplier.Paid},
	// Not final, both: the merchant may open another session for the same order.
	"checkout.session.async_payment_failed": {Status: supplier.Failed},
	"checkout.session.expired":              {Status: supplier.Failed},

	"charge.refunded":        {Status: supplier.Refunded},
	"refund.succeeded":       {Status: supplier.Refunded},
	"refund.pending":         {Status: supplier.Other},
	"refund.requires_action": {Status: supplier.Other},

	"charge.dispute.created":          {Status: supplier.Disputed},
	"charge.dispute.updated":          {Status: supplier.Disputed},
	"charge.dispute.closed":           {Status: supplier.Disputed},
	"charge.dispute.funds_withdrawn":  {Status: supplier.Disputed},
	"charge.dispute.funds_reinstated": {Status: supplier.Disputed},

	// Steps on the way to one of the words above: no money has come or gone.
	"payment_intent.created":                   {Status: supplier.Other},
	"payment_intent.processing":                {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_action":           {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_capture":          {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_confirmation":     {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_payment_method":   {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.amount_capturable_updated": {Status: supplier.Other},
	"charge.succeeded":                         {Status: supplier.Other}, // of an intent, which has an event of its own
	"charge.captured":                          {Status: supplier.Other},
	"charge.pending":                           {Status: supplier.Other},
	"charge.failed":                            {Status: supplier.Other},
	"charge.expired":                           {Status: supplier.Other},
	"charge.updated":                           {Status: supplier.Other},

	"account.updated":    {Status: supplier.Other},
	"capability.updated": {Status: supplier.Other},
	"file.created":       {Status: supplier.Other},
	"mandate.updated":    {Status: supplier.Other},
}

// harmless are the beginnings of event types that are about no money at all:
// buyers, catalogues, settings and reports.
var harmless = []string{
	"account.application.", "billing_portal.", "coupon.", "customer.", "entitlements.", "identity.", "payment_link.", "payment_method.",
	"person.", "plan.", "price.", "product.", "promotion_code.", "quote.", "reporting.", "setup_intent.", "sigma.", "tax.", "tax_rate.",
	"terminal.", "test_helpers.",
}

// meaning looks a word up. What Stripe may add one day, and whatever is about money
// that is not handled here (payouts, transfers, invoices, fees), is unknown.
func meaning(word string) supplier.Meaning {
	m := words.Of(word)
	if m.Status == supplier.Unknown && slices.ContainsFunc(harmless, func(begin string) bool { return strings.HasPrefix(word, begin) }) {
		m.Status = supplier.Other
	}
	return m
}
