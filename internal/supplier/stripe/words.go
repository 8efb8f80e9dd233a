package stripe

import (
	"slices"
	"strings"

	"backstop/internal/supplier"
)

// words maps Stripe's terms to their meaning: types of events
// (docs.stripe.com/api/events/types), and statuses of objects prefixed by the kind of object
// ("refund.pending"), which is also how Stripe names the events of status changes.
var words = supplier.Words{
	// Statuses of intents: docs.stripe.com/payments/paymentintents/lifecycle.
	"payment_intent.succeeded": {Status: supplier.Paid},
	// The buyer may try another card on the same intent.
	"payment_intent.payment_failed": {Status: supplier.Failed},
	// The order may have another intent: it ends at its expiry.
	"payment_intent.canceled": {Status: supplier.Closed, OneTry: true},

	"checkout.session.paid":                    {Status: supplier.Paid},
	"checkout.session.unpaid":                  {Status: supplier.Other},
	"checkout.session.no_payment_required":     {Status: supplier.Other},
	"checkout.session.async_payment_succeeded": {Status: supplier.Paid},
	// Neither is final: the merchant may open another session for the same order.
	"checkout.session.async_payment_failed": {Status: supplier.Failed},
	"checkout.session.expired":              {Status: supplier.Failed},

	"charge.refunded":        {Status: supplier.Refunded},
	"refund.succeeded":       {Status: supplier.Refunded},
	"refund.pending":         {Status: supplier.Other},
	"refund.requires_action": {Status: supplier.Other},
	"refund.failed":          {Status: supplier.Other},
	"refund.canceled":        {Status: supplier.Other},

	"charge.dispute.created":          {Status: supplier.Disputed},
	"charge.dispute.updated":          {Status: supplier.Disputed},
	"charge.dispute.closed":           {Status: supplier.Disputed},
	"charge.dispute.funds_withdrawn":  {Status: supplier.Disputed},
	"charge.dispute.funds_reinstated": {Status: supplier.Disputed},

	// Steps on the way to one of the above: no money has been paid or returned.
	"payment_intent.created":                   {Status: supplier.Other},
	"payment_intent.processing":                {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_action":           {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_capture":          {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_confirmation":     {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.requires_payment_method":   {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"payment_intent.amount_capturable_updated": {Status: supplier.Other},
	"charge.succeeded":                         {Status: supplier.Other}, // belongs to an intent, which has its own event
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

// harmless are prefixes of event types that involve no money: buyers, catalogues, settings and
// reports.
var harmless = []string{
	"account.application.", "billing_portal.", "coupon.", "customer.", "entitlements.", "identity.", "payment_link.", "payment_method.",
	"person.", "plan.", "price.", "product.", "promotion_code.", "quote.", "reporting.", "setup_intent.", "sigma.", "tax.", "tax_rate.",
	"terminal.", "test_helpers.",
}

// meaning looks up a term. Anything that Stripe may add, and anything about money that is not
// handled here (payouts, transfers, invoices, fees), is unknown.
func meaning(word string) supplier.Meaning {
	m := words.Of(word)
	if m.Status == supplier.Unknown && slices.ContainsFunc(harmless, func(begin string) bool { return strings.HasPrefix(word, begin) }) {
		m.Status = supplier.Other
	}
	return m
}
