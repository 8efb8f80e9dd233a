package refund

import (
	"fmt"
	"slices"

	"backstop/internal/ledger/fact"
)

// Event is something that happens to a refund.
type Event string

// Events, see Table.
const (
	Approve  Event = "approve"
	Reject   Event = "reject"
	Withdraw Event = "withdraw"
	Sent     Event = "sent"
	Doubted  Event = "doubted"
	Arrived  Event = "arrived"
	Refused  Event = "refused"
	CameBack Event = "came_back"
	Adopted  Event = "adopted"
)

// Move is what an event does to a refund.
type Move struct {
	Event Event
	From  []Status // "" = it is new
	To    Status
	Facts []fact.Name
	// Counts is 1 if the refund counts as refunded from now on, which returns its part of the
	// fees, and -1 if it does so no more.
	Counts int64
	Notice string // the notification's type; "" = none
}

// Types of notifications.
const (
	noticeSucceeded = "refund.succeeded"
	noticeFailed    = "refund.failed"
)

// Table lists every move. Requests are the only other thing that moves money: they hold it.
// Neither Sent nor Doubted moves any.
var Table = []Move{
	{Event: Approve, From: []Status{Requested}, To: Approved},
	{Event: Reject, From: []Status{Requested}, To: Rejected, Facts: []fact.Name{fact.RefundBack}, Notice: noticeFailed},
	{Event: Withdraw, From: []Status{Requested, Approved}, To: Cancelled, Facts: []fact.Name{fact.RefundBack}},
	{Event: Sent, From: []Status{Approved}, To: Submitted},
	{Event: Doubted, From: []Status{Submitted}, To: Unknown},
	{
		Event: Arrived, From: []Status{Submitted, Unknown}, To: Succeeded, Facts: []fact.Name{fact.RefundDone}, Counts: 1,
		Notice: noticeSucceeded,
	},
	{Event: Refused, From: []Status{Approved, Submitted, Unknown}, To: Failed, Facts: []fact.Name{fact.RefundBack}, Notice: noticeFailed},
	{
		Event: CameBack, From: []Status{Succeeded}, To: Returned, Facts: []fact.Name{fact.RefundReturned, fact.RefundBack}, Counts: -1,
		Notice: noticeFailed,
	},
	{Event: Adopted, From: []Status{""}, To: Succeeded, Facts: []fact.Name{fact.RefundAdopted}, Counts: 1, Notice: noticeSucceeded},
}

// Next returns what an event does to a refund, or an error if it is illegal. It reads and writes
// nothing.
func Next(status Status, e Event) (Move, error) {
	m := Table[slices.IndexFunc(Table, func(m Move) bool { return m.Event == e })]
	if !slices.Contains(m.From, status) || status != "" && !Moves.Can(status, m.To) {
		return m, fmt.Errorf("illegal event %s for a refund that is %s", e, status)
	}
	return m, nil
}
