package payout

import (
	"fmt"
	"slices"

	"backstop/internal/ledger/fact"
)

// Event is something that happens to a payout.
type Event string

// Events, see Table.
const (
	Approve   Event = "approve"
	Reject    Event = "reject"
	Withdraw  Event = "withdraw"
	Begin     Event = "begin"
	Debited   Event = "debited"
	Undebited Event = "undebited"
	Sent      Event = "sent"
	Doubted   Event = "doubted"
	GaveUp    Event = "gave_up"
	Arrived   Event = "arrived"
	Refused   Event = "refused"
	Returned  Event = "returned"
	Booked    Event = "booked"
	Unbooked  Event = "unbooked"
	Retried   Event = "retried"
	Late      Event = "late"
)

// Move is what an event does to a payout. None leaves a step as it is.
type Move struct {
	Event                   Event
	From                    []Status
	To                      Status
	Debit, Credit, Reversal StepState
	Facts                   []fact.Name
	Notice                  string // the notification's type; "" = none
}

// Types of notifications.
const (
	noticeSucceeded = "payout.succeeded"
	noticeFailed    = "payout.failed"
	noticeReturned  = "payout.returned"
)

// Table lists every move. Money moves with Debited, Arrived, Booked, Returned and Late alone,
// and none of them follows from an answer that is unknown.
var Table = []Move{
	{Event: Approve, From: []Status{Created}, To: Approved},
	{Event: Reject, From: []Status{Created}, To: Rejected, Notice: noticeFailed},
	{Event: Withdraw, From: []Status{Created, Approved}, To: Cancelled},
	{Event: Begin, From: []Status{Approved}, To: Debiting, Debit: Processing},
	{Event: Debited, From: []Status{Debiting}, To: Crediting, Debit: Success, Facts: []fact.Name{fact.PayoutDebit, fact.PayoutFee}},
	{Event: Undebited, From: []Status{Debiting}, To: Failed, Debit: Failure, Notice: noticeFailed},
	{Event: Sent, From: []Status{Crediting}, To: Crediting, Credit: Processing},
	{Event: Doubted, From: []Status{Crediting}, To: Unknown, Credit: Unsure},
	{Event: GaveUp, From: []Status{Crediting, Unknown}, To: Stuck, Credit: Unsure},
	{
		Event: Arrived, From: []Status{Crediting, Unknown, Stuck}, To: Succeeded, Credit: Success, Facts: []fact.Name{fact.PayoutCredit},
		Notice: noticeSucceeded,
	},
	{Event: Refused, From: []Status{Crediting, Unknown, Stuck}, To: Reversing, Credit: Failure, Reversal: Init},
	{Event: Returned, From: []Status{Succeeded}, To: Reversing, Credit: CameBack, Reversal: Init, Facts: []fact.Name{fact.PayoutReturned}},
	{
		Event: Booked, From: []Status{Reversing}, To: Reversed, Reversal: Success, Facts: []fact.Name{fact.PayoutReversal, fact.PayoutFeeBack},
		Notice: noticeFailed,
	},
	{Event: Unbooked, From: []Status{Reversing}, To: Stuck, Reversal: Failure},
	{Event: Retried, From: []Status{Stuck}, To: Reversing, Reversal: Processing},
	{Event: Late, From: []Status{Reversed}, To: Reversed, Credit: Success, Facts: []fact.Name{fact.PayoutLate}},
}

// moveOf returns the move of an event.
func moveOf(e Event) Move {
	i := slices.IndexFunc(Table, func(m Move) bool { return m.Event == e })
	return Table[i]
}

// Steps are the states of a payout's steps.
type Steps struct{ Debit, Credit, Reversal StepState }

// Next returns what an event makes of a payout, or an error if it is illegal. It is the whole
// machine: it reads and writes nothing.
func Next(status Status, steps Steps, e Event) (Status, Steps, Move, error) {
	m := moveOf(e)
	illegal := func() (Status, Steps, Move, error) {
		return status, steps, m, fmt.Errorf("illegal event %s for a payout that is %s (debit %s, credit %s, reversal %s)", e, status,
			steps.Debit, steps.Credit, steps.Reversal)
	}
	if !slices.Contains(m.From, status) || m.To != status && !Moves.Can(status, m.To) {
		return illegal()
	}
	if e == Returned && steps.Reversal == Failure { // it arrived although it was to be reversed: that is tried again
		m.Reversal = Processing
	}
	next := steps
	for _, s := range []struct {
		of *StepState
		to StepState
	}{{&next.Debit, m.Debit}, {&next.Credit, m.Credit}, {&next.Reversal, m.Reversal}} {
		if s.to == None || s.to == *s.of && s.to == Unsure {
			continue
		}
		if *s.of == None && s.to != Init || *s.of != None && !StepMoves.Can(*s.of, s.to) {
			return illegal()
		}
		*s.of = s.to
	}
	switch { // what no step says alone
	case next.Credit != Init && next.Debit != Success,
		next.Reversal != None && next.Credit != Failure && next.Credit != CameBack && e != Late &&
			(e != Arrived || next.Reversal != Failure),
		e == Retried && steps.Reversal != Failure:
		return illegal()
	}
	if e == Booked && next.Credit == CameBack {
		m.Notice = noticeReturned
	}
	return m.To, next, m, nil
}

// Cell is one row of the table of a payout's steps: which states its steps may have together,
// and what follows.
type Cell struct {
	No                      string
	Debit, Credit, Reversal []StepState
	Status                  []Status
	Next                    string // a sentence for docs/states.md
}

// Cells list every combination that a stored payout may have.
var Cells = []Cell{
	{"P1", of(Init), of(Init), of(None), []Status{Created}, "Two people decide, or the merchant cancels."},
	{"P2", of(Init), of(Init), of(None), []Status{Approved, Rejected, Cancelled}, "Approved: debit the account. The others have ended."},
	{"P3", of(Processing, Unsure), of(Init), of(None), []Status{Debiting}, "Look for the entry, and debit under the same key."},
	{"P4", of(Failure), of(Init), of(None), []Status{Failed}, "The merchant is notified."},
	{"P5", of(Success), of(Init), of(None), []Status{Crediting}, "Send it to the supplier."},
	{"P6", of(Success), of(Processing), of(None), []Status{Crediting}, "Query the supplier."},
	{"P7", of(Success), of(Unsure), of(None), []Status{Unknown}, "Only query, under the same number: never another key or supplier."},
	{"P8", of(Success), of(Success), of(None, Failure), []Status{Succeeded}, "The merchant is notified."},
	{"P9", of(Success), of(Failure), of(Init), []Status{Reversing}, "Book it back, in the same transaction."},
	{
		"P10", of(Success), of(Failure, CameBack), of(Processing, Unsure),
		[]Status{Reversing},
		"Look for the entry, and book it back under the same key.",
	},
	{
		"P11", of(Success), of(Failure, CameBack), of(Success),
		[]Status{Reversed},
		"The merchant is notified; the supplier is queried daily for a week.",
	},
	{"P12", of(Success), of(Failure, CameBack), of(Failure), []Status{Stuck}, "Two people decide."},
	{"P13", of(Success), of(CameBack), of(Init), []Status{Reversing}, "Book it back, in the same transaction."},
	{
		"P14", of(Success), of(Unsure), of(None),
		[]Status{Stuck},
		"Two people decide by the supplier's statement; the supplier is queried daily.",
	},
	{
		"P15", of(Success), of(Success), of(Success),
		[]Status{Reversed},
		"It arrived after its reversal: the merchant is debited again, and operators are alerted.",
	},
}

func of(s ...StepState) []StepState { return s }
