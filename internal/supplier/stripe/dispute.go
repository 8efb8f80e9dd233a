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
}

// disputesOver are the final statuses.
var disputesOver = []string{"won", "lost", "warning_closed", "prevented"}

// dispute parses a dispute. Its messages differ in more than status and amount, so each event
// counts separately, with its id as the key.
func dispute(got supplier.Callback, raw json.RawMessage) (supplier.Callback, error) {
	var o disputeObject
	if err := json.Unmarshal(raw, &o); err != nil {
		return partial(got), oddObject.Say(got.RawStatus)
	}
	got.TradeNo = cmp.Or(id(o.PaymentIntent), id(o.Charge))
	got.Currency = strings.ToUpper(plainText(o.Currency))
	if plainText(o.ID) == "" {
		return partial(got), noDispute.Say(got.RawStatus)
	}
	if minor, err := money.ParseMinor(string(o.Amount)); err == nil {
		got.Amount = minor
	}
	status := plainText(o.Status)
	got.Status = supplier.Disputed
	got.Dispute = &supplier.Dispute{
		No: plainText(o.ID), Reason: plainText(o.Reason), Status: status, DueBy: moment(dueBy(o.EvidenceDetails)),
		Over: slices.Contains(disputesOver, status),
	}
	return got, nil
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
