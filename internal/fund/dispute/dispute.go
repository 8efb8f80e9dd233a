// Package dispute books what buyers dispute: a dispute's money is reserved from its first
// message on, and moves when the supplier takes it, gives it back, or the dispute is won.
// Messages come repeatedly and in any order. Each adds to what is known, and what is booked
// follows from that alone, so every entry is posted once whatever comes first.
package dispute

import (
	"errors"
	"strconv"

	"backstop/internal/base/moves"
	"backstop/internal/ledger/fact"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Status is the status of a dispute.
type Status string

// Statuses, see Moves.
const (
	Opened   Status = "opened"
	Answered Status = "answered"
	Won      Status = "won"
	Lost     Status = "lost"
)

// Moves lists every legal change of a dispute's status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Dispute", Column: "disputes.status",
	About: "A payment that the buyer's bank demands back. A message may be the first that arrives, so a dispute may begin in any status, with the earlier one in its history. " +
		"What the supplier did with the money is recorded beside the status, and both together decide what is booked (`dispute:<id>:…`). Each change is a compare-and-set " +
		"under the lock of the order, in the transaction of the message.",
	Rows: []moves.Row[Status]{
		{
			Status: Opened, Initial: true, Open: true, NeedsPerson: true, To: []Status{Answered, Won, Lost},
			Meaning: "The money is reserved; evidence is due.",
		},
		{
			Status: Answered, Initial: true, Open: true, To: []Status{Won, Lost},
			Meaning: "Evidence was recorded here, or the supplier reviews it.",
		},
		{Status: Won, Initial: true, Meaning: "The merchant keeps the payment: the reserve is released, or the money comes back."},
		{
			Status: Lost, Initial: true, To: []Status{Won},
			Meaning: "The buyer keeps the money: what was reserved is the supplier's once it takes it. It may still be won.",
		},
	},
}

// ended reports whether the status is final.
func (s Status) ended() bool { return s == Won || s == Lost }

// Dispute is one dispute. Moments are Unix microseconds by the database's clock, amounts minor
// units of Currency.
type Dispute struct {
	bun.BaseModel `bun:"table:disputes,alias:dp"`

	ID                int64  `bun:"id,pk"`
	DisputeNo         string `bun:"dispute_no"`
	OrderID           int64  `bun:"order_id"` // 0 = its payment is not known, or paid no order
	OrderNo           string `bun:"order_no"`
	SupplierID        int64  `bun:"supplier_id"`
	AccountID         int64  `bun:"account_id"`
	SupplierDisputeNo string `bun:"supplier_dispute_no"`
	TradeNo           string `bun:"trade_no"`
	ChargeNo          string `bun:"charge_no"` // another number of the payment; "" = none
	MerchantID        int64  `bun:"merchant_id"`
	Amount            int64  `bun:"amount"`  // as first reported; what is booked
	Exceeds           int64  `bun:"exceeds"` // the part above what was left of the payment
	Fee               int64  `bun:"fee"`
	FeeBack           int64  `bun:"fee_back"`
	Currency          string `bun:"currency"`
	Reason            string `bun:"reason"` // as given by the supplier
	Status            Status `bun:"status"`
	Withdrawn         bool   `bun:"withdrawn"`  // the supplier took the money
	Reinstated        int64  `bun:"reinstated"` // how much of it is back
	Released          bool   `bun:"released"`   // won before the money was taken
	HeldRef           string `bun:"held_ref"`   // entry that held the money that was taken, if it paid no order
	DueBy             *int64 `bun:"due_by"`     // deadline for evidence
	DueAlertedAt      *int64 `bun:"due_alerted_at"`
	Version           int64  `bun:"version"`
	OpenedAt          int64  `bun:"opened_at"`
	ClosedAt          *int64 `bun:"closed_at"`
}

// Evidence is what an operator recorded about a dispute. It is not sent to the supplier.
type Evidence struct {
	bun.BaseModel `bun:"table:dispute_evidence,alias:de"`

	ID        int64  `bun:"id,pk"`
	DisputeID int64  `bun:"dispute_id"`
	Actor     string `bun:"actor"`
	Text      string `bun:"text"`
	URL       string `bun:"url"` // "" = none
	CreatedAt int64  `bun:"created_at"`
}

// ErrNotFound means that there is no such dispute.
var ErrNotFound = errors.New("no such dispute")

// Number returns a dispute's number, which is ours: the supplier's is unique only there.
func Number(id int64) string { return "D" + strconv.FormatInt(id, 10) }

// key returns the id as entries use it.
func (d *Dispute) key() string { return strconv.FormatInt(d.ID, 10) }

// matched reports whether the disputed payment paid an order: then it is the merchant's money.
func (d *Dispute) matched() bool { return d.OrderID != 0 }

// statusOf translates a stage; "" = an inquiry, or a status that is not known.
func statusOf(s supplier.DisputeStage) Status {
	switch s {
	case supplier.DisputeOpened:
		return Opened
	case supplier.DisputeAnswered:
		return Answered
	case supplier.DisputeWon:
		return Won
	case supplier.DisputeLost:
		return Lost
	}
	return ""
}

// opens reports whether a message is about a dispute that demands money. An inquiry demands
// none, and of an unknown status only the money that moved counts.
func opens(said *supplier.Dispute) bool {
	return statusOf(said.Stage) != "" || said.Withdrawn || said.Reinstated > 0
}

// learn adds what a message says. Everything is kept that was known, so the order of messages
// does not matter. It returns the statuses passed, in order.
func (d *Dispute) learn(said *supplier.Dispute) (passed []Status) {
	if to := statusOf(said.Stage); Moves.Can(d.Status, to) {
		d.Status, passed = to, []Status{to}
	}
	d.Withdrawn = d.Withdrawn || said.Withdrawn || said.Reinstated > 0
	if d.Reinstated == 0 {
		d.Reinstated = min(said.Reinstated, d.Amount)
	}
	if said.FeeCurrency == d.Currency {
		if d.Fee == 0 {
			d.Fee = said.Fee
		}
		if d.FeeBack == 0 {
			d.FeeBack = min(said.FeeBack, d.Fee)
		}
	}
	d.settle()
	return passed
}

// settle decides whether the reserve is released: won, and the money was never taken as far as
// is known. It stays released: if the supplier reports later that it took the money and gave it
// back, both cancel out.
func (d *Dispute) settle() {
	if d.matched() && d.Status == Won && !d.Withdrawn {
		d.Released = true
	}
}

// posting is one entry that a dispute has.
type posting struct {
	fact   fact.Name
	amount int64
}

// postings returns the entries that a dispute must have, in the order in which money moves.
func (d *Dispute) postings() (all []posting) {
	add := func(when bool, f fact.Name, amount int64) {
		if when && amount > 0 {
			all = append(all, posting{f, amount})
		}
	}
	moves := d.matched() && !d.Released || d.HeldRef != ""
	add(d.matched(), fact.DisputeHeld, d.Amount)
	add(d.Released, fact.DisputeReleased, d.Amount)
	add(moves && d.Withdrawn, fact.DisputeWithdrawn, d.Amount)
	add(moves, fact.DisputeReinstated, d.Reinstated)
	add(d.matched() || d.HeldRef != "", fact.DisputeFee, d.Fee)
	add(d.matched() || d.HeldRef != "", fact.DisputeFeeBack, d.FeeBack)
	return all
}

// counts returns the part of its order's payment that the dispute takes: while it is open, and
// when it is lost.
func (d *Dispute) counts() int64 {
	switch {
	case !d.matched() || d.Status == Won:
		return 0
	case d.Status == Lost:
		return d.Amount - d.Reinstated
	}
	return d.Amount
}

// reserved returns what is in the merchant's reserve for the dispute.
func (d *Dispute) reserved() int64 {
	if !d.matched() || d.Withdrawn || d.Released {
		return 0
	}
	return d.Amount
}

// contradicts reports whether a message does not fit what is booked, so that a person must look:
// another end than the one that is known, or money that was taken after the reserve was released.
func (d *Dispute) contradicts(said *supplier.Dispute) bool {
	to := statusOf(said.Stage)
	return d.Status.ended() && to.ended() && to != d.Status || d.Released && d.Withdrawn && d.Reinstated == 0
}
