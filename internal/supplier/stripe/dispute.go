package stripe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// disputeObject is the part of a dispute that is used. Only its id is required: a dispute with
// an unexpected field still becomes an exception.
type disputeObject struct {
	ID              json.RawMessage `json:"id"`
	Charge          json.RawMessage `json:"charge"`
	PaymentIntent   json.RawMessage `json:"payment_intent"` // null of a charge without one
	Amount          json.RawMessage `json:"amount"`
	Currency        json.RawMessage `json:"currency"`
	Reason          json.RawMessage `json:"reason"`
	Status          json.RawMessage `json:"status"`
	EvidenceDetails json.RawMessage `json:"evidence_details"`
	Movements       json.RawMessage `json:"balance_transactions"` // what moved on our account so far
}

// disputesOver are the final statuses.
var disputesOver = []string{"won", "lost", "warning_closed", "prevented"}

// disputeStages maps the statuses of a dispute (docs.stripe.com/api/disputes/object) to ours.
// Warnings are inquiries, which take no money; a prevented dispute never became one.
var disputeStages = map[string]supplier.DisputeStage{
	"warning_needs_response": supplier.DisputeInquiry, "warning_under_review": supplier.DisputeInquiry,
	"warning_closed": supplier.DisputeInquiry,
	"prevented":      supplier.DisputeInquiry,
	"needs_response": supplier.DisputeOpened, "under_review": supplier.DisputeAnswered, "won": supplier.DisputeWon,
	"lost": supplier.DisputeLost,
}

// Types of events that say what the money did, even if the object lists no movement.
const (
	fundsWithdrawn  = "charge.dispute.funds_withdrawn"
	fundsReinstated = "charge.dispute.funds_reinstated"
)

// dispute parses a dispute. Its messages differ in more than status and amount, so each event
// counts separately, with its id as the key.
func dispute(got supplier.Callback, raw json.RawMessage) (supplier.Callback, error) {
	var o disputeObject
	if err := json.Unmarshal(raw, &o); err != nil {
		return got, oddObject.Say(got.RawStatus)
	}
	got.TradeNo = cmp.Or(id(o.PaymentIntent), id(o.Charge))
	got.Currency = strings.ToUpper(plainText(o.Currency))
	if plainText(o.ID) == "" {
		return got, noDispute.Say(got.RawStatus)
	}
	if minor, err := money.ParseMinor(string(o.Amount)); err == nil {
		got.Amount = minor
	}
	status := plainText(o.Status)
	got.Status = supplier.Disputed
	got.Dispute = &supplier.Dispute{
		No: plainText(o.ID), Reason: plainText(o.Reason), Status: status, DueBy: moment(dueBy(o.EvidenceDetails)),
		Over: slices.Contains(disputesOver, status), Stage: disputeStages[status], Charge: id(o.Charge),
	}
	moved(got.Dispute, o.Movements, got.Amount, got.Currency)
	switch {
	case got.RawStatus == fundsReinstated && got.Dispute.Reinstated == 0:
		got.Dispute.Withdrawn, got.Dispute.Reinstated = true, got.Amount
	case got.RawStatus == fundsWithdrawn:
		got.Dispute.Withdrawn = true
	}
	return got, nil
}

// moved fills in what the balance transactions say: amounts below zero were withdrawn, those
// above are back, and fees below zero were returned. They are in the currency of our account
// there: what is back in another one than the dispute's counts as the whole dispute. A list that
// cannot be read says nothing.
func moved(d *supplier.Dispute, raw json.RawMessage, whole int64, currency string) {
	var all []struct {
		Amount   json.RawMessage `json:"amount"`
		Fee      json.RawMessage `json:"fee"`
		Currency json.RawMessage `json:"currency"`
	}
	if json.Unmarshal(raw, &all) != nil {
		return
	}
	for _, m := range all {
		in := strings.ToUpper(plainText(m.Currency))
		switch amount, below := signedMinor(m.Amount); {
		case amount == 0:
		case below:
			d.Withdrawn = true
		case in == currency:
			d.Withdrawn, d.Reinstated = true, d.Reinstated+amount
		default:
			d.Withdrawn, d.Reinstated = true, whole
		}
		fee, returned := signedMinor(m.Fee)
		switch {
		case fee == 0 || in == "" || d.FeeCurrency != "" && d.FeeCurrency != in:
			continue
		case returned:
			d.FeeBack += fee
		default:
			d.Fee += fee
		}
		d.FeeCurrency = in
	}
}

// signedMinor reads an integer amount as its size and sign; 0 = it cannot be read.
func signedMinor(raw json.RawMessage) (minor int64, below bool) {
	text, below := strings.CutPrefix(string(raw), "-")
	minor, err := money.ParseMinor(text)
	if err != nil {
		return 0, false
	}
	return minor, below
}

// dueBy returns the deadline for evidence in Unix seconds; 0 = none given.
func dueBy(details json.RawMessage) int64 {
	var d struct {
		DueBy json.RawMessage `json:"due_by"`
	}
	if json.Unmarshal(details, &d) != nil {
		return 0
	}
	seconds, err := strconv.ParseInt(string(d.DueBy), 10, 64)
	if err != nil {
		return 0
	}
	return seconds
}
