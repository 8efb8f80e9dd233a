// Package payout implements payouts to merchants as a state machine of three stored steps: a
// local debit, a remote credit and, if that failed for certain, a local reversal. While the
// outcome of the credit is unknown no money moves: the supplier is only queried, always under
// the same number.
package payout

import (
	"errors"
	"fmt"
	"strconv"

	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// Status is the status of a payout.
type Status string

// Statuses, see Moves.
const (
	Created   Status = "created"
	Approved  Status = "approved"
	Rejected  Status = "rejected"
	Cancelled Status = "cancelled"
	Debiting  Status = "debiting"
	Crediting Status = "crediting"
	Unknown   Status = "unknown"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Reversing Status = "reversing"
	Reversed  Status = "reversed"
	Stuck     Status = "stuck"
)

// Moves lists every legal change of a payout's status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Payout", Column: "payouts.status",
	About: "Money on its way out to a merchant. Each change is a compare-and-set on status and version under the lock of the payout, " +
		"with its steps, its history, its entries (`payout:<id>:…`) and its notification in the same transaction.",
	Rows: []moves.Row[Status]{
		{
			Status: Created, Initial: true, Open: true, NeedsPerson: true, To: []Status{Approved, Rejected, Cancelled},
			Meaning: "Requested; waiting for two people's decision. Nothing is booked yet.",
		},
		{
			Status: Approved, Initial: true, Open: true, To: []Status{Debiting, Cancelled},
			Meaning: "Approved, or within the merchant's limits.",
		},
		{Status: Rejected, Meaning: "Rejected, or not approved in time."},
		{Status: Cancelled, Meaning: "The merchant cancelled it before its account was debited."},
		{
			Status: Debiting, Open: true, To: []Status{Crediting, Failed},
			Meaning: "The merchant's account is being debited, in one transaction with the next move.",
		},
		{
			Status: Crediting, Open: true, To: []Status{Unknown, Succeeded, Reversing, Stuck},
			Meaning: "The account is debited, and the supplier is to pay, or is paying.",
		},
		{
			Status: Unknown, Open: true, To: []Status{Succeeded, Reversing, Stuck},
			Meaning: "No clear answer: no money moves, and the supplier is queried under the same number.",
		},
		{Status: Succeeded, To: []Status{Reversing}, Meaning: "The supplier paid it. The money may still come back later."},
		{Status: Failed, Meaning: "The account could not be debited: nothing was booked."},
		{
			Status: Reversing, Open: true, To: []Status{Reversed, Stuck},
			Meaning: "It failed for certain or was returned; the money is being booked back, in the transaction that recorded it.",
		},
		{
			Status: Reversed, To: []Status{Reversed},
			Meaning: "The money is back on the merchant's account. If the payout arrives all the same, the merchant is debited again.",
		},
		{
			Status: Stuck, Open: true, NeedsPerson: true, To: []Status{Succeeded, Reversing},
			Meaning: "The supplier has given no clear answer to any query, or the money could not be booked back: two people decide by the supplier's statement.",
		},
	},
}

// dead are the statuses of payouts that draw nothing.
var dead = []Status{Rejected, Cancelled, Failed, Reversed}

// Step names.
const (
	Debit    = "debit"
	Credit   = "credit"
	Reversal = "reversal"
)

// StepState is the state of one step.
type StepState string

// States of steps, see StepMoves.
const (
	None       StepState = "" // the step does not exist
	Init       StepState = "init"
	Processing StepState = "processing"
	Unsure     StepState = "unknown"
	Success    StepState = "success"
	Failure    StepState = "failed"
	CameBack   StepState = "returned"
)

// StepMoves lists every legal change of a step's state.
var StepMoves = moves.Table[StepState]{
	Noun: "Payout step", Column: "fund_steps.state",
	About: "A step of a payout: the debit and the reversal on our ledger, the credit at the supplier. Each has one key for life.",
	Rows: []moves.Row[StepState]{
		{Status: Init, Initial: true, Open: true, To: []StepState{Processing, Success, Failure}, Meaning: "Not begun."},
		{Status: Processing, Open: true, To: []StepState{Unsure, Success, Failure}, Meaning: "Begun: it may take effect."},
		{Status: Unsure, Open: true, To: []StepState{Success, Failure}, Meaning: "Nobody knows whether it took effect."},
		{Status: Success, To: []StepState{CameBack}, Meaning: "It took effect."},
		{
			Status: Failure, To: []StepState{Processing, Success},
			Meaning: "It had no effect. A reversal may be tried again; a credit that arrives after its reversal is a success.",
		},
		{Status: CameBack, Meaning: "Only a credit: it took effect, and the money came back."},
	},
}

// Payout is one payout. Moments are Unix microseconds by the database's clock, amounts minor
// units of Currency.
type Payout struct {
	bun.BaseModel `bun:"table:payouts,alias:po"`

	ID               int64  `bun:"id,pk"`
	PayoutNo         string `bun:"payout_no"`
	MerchantID       int64  `bun:"merchant_id"`
	OutPayoutNo      string `bun:"out_payout_no"`
	SupplierID       int64  `bun:"supplier_id"`
	AccountID        int64  `bun:"account_id"` // ours at the supplier
	PayoutAccountID  int64  `bun:"payout_account_id"`
	Account          Shown  `bun:"account,type:text"` // PayoutAccountID as it may be shown
	Amount           int64  `bun:"amount"`
	FeeAmount        int64  `bun:"fee_amount"`
	Currency         string `bun:"currency"`
	Exponent         int    `bun:"exponent"`
	RequestDigest    string `bun:"request_digest"`
	NotifyURL        string `bun:"notify_url"`
	Status           Status `bun:"status"`
	Version          int64  `bun:"version"`
	Failure          string `bun:"failure"` // the supplier's listed final word, or why nothing was debited; "" = none
	SupplierPayoutNo string `bun:"supplier_payout_no"`
	ByRule           bool   `bun:"by_rule"`
	ApprovalID       int64  `bun:"approval_id"`   // 0 = none
	DebitedAt        *int64 `bun:"debited_at"`    // counts towards this day's limit
	FirstCallAt      *int64 `bun:"first_call_at"` // nil = it was never sent
	LastCallAt       *int64 `bun:"last_call_at"`
	ShortAt          *int64 `bun:"short_at"` // since when our account at the supplier is short of funds
	Short            bool   `bun:"short"`    // that was the answer to the last call
	CreatedAt        int64  `bun:"created_at"`
	FinishedAt       *int64 `bun:"finished_at"`

	// Steps are from fund_steps; None = the step does not exist.
	Steps `bun:"-"`
}

// Step is one step of a payout. Its key is the payout's number with the step's letter; it never
// leaves the house.
type Step struct {
	bun.BaseModel `bun:"table:fund_steps,alias:fs"`

	ID        int64     `bun:"id,pk"`
	PayoutID  int64     `bun:"payout_id"`
	Step      string    `bun:"step"` // Debit, Credit or Reversal
	Key       string    `bun:"key"`
	State     StepState `bun:"state"`
	Version   int64     `bun:"version"`
	UpdatedAt int64     `bun:"updated_at"`
}

// Errors of requests, besides *LimitError, *act.FieldError (account, supplier, currency, amount,
// notify_url) and ledger.ErrInsufficient.
var (
	ErrNotFound = errors.New("no such payout")
	// ErrConflict means that the merchant reused an out_payout_no with different content (409
	// idempotency_conflict).
	ErrConflict = errors.New("out_payout_no was already used for a payout with different content: use a new one")
	// ErrStarted means that the account is debited already (409 payout_started).
	ErrStarted = errors.New("the payout has begun and cannot be cancelled")
	// ErrFrozen means that the merchant is frozen by two people's decision (409 frozen).
	ErrFrozen = errors.New("the merchant's account is frozen: contact the operator of the platform")
)

// LimitError means that a payout exceeds a limit of the merchant (409 limit_exceeded).
type LimitError struct {
	Field string // payout_each or payout_day
	Left  int64  // minor units that would still be within it
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the amount exceeds the limit %s: at most %d is left (minor units)", e.Field, e.Left)
}

// Limits are what a merchant may draw, in minor units of one currency.
type Limits struct {
	Each      int64 // one payout; 0 = no limit
	Day       int64 // the total of one day; 0 = no limit
	Auto      int64 // up to which no person is asked; 0 = always
	Overdraft int64 // how far its balance may go below zero
}

// Number returns a payout's number at its supplier: only letters and digits, and never reused.
func Number(id int64) string { return "P" + strconv.FormatInt(id, 10) }

// key returns the id as entries use it.
func (p *Payout) key() string { return key(p.ID) }

func key(id int64) string { return strconv.FormatInt(id, 10) }

// keyOf returns the key of a step, which is fixed for life.
func (p *Payout) keyOf(step string) string {
	return p.PayoutNo + ":" + map[string]string{Debit: "D", Credit: "C", Reversal: "R"}[step]
}
