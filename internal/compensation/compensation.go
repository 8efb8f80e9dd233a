// Package compensation retries what stopped half-way: one row per message, call, write or flow,
// tried with growing waits until it is over or dead. Each kind has a folder below.
package compensation

import (
	"encoding/json"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Names of the kinds.
const (
	Resend     = "resend"     // a message, with the same body and id
	ReplayCall = "replaycall" // a call to a supplier, after querying the supplier
	Rerun      = "rerun"      // a flow, from its start
)

// Names lists all kinds.
var Names = []string{Resend, ReplayCall, Rerun}

// Cause is why an item must be retried: at first what stopped it, then the class of its last
// failed try.
type Cause string

// Causes.
const (
	SupplierUnknown     Cause = "supplier_unknown"     // its answer is not a well-signed status that we know
	SupplierRefused     Cause = "supplier_refused"     // it refused
	SupplierTimeout     Cause = "supplier_timeout"     // it did not answer
	SupplierSignature   Cause = "supplier_signature"   // its answer has no valid signature
	MerchantUnreachable Cause = "merchant_unreachable" // or an alert's target
	Database            Cause = "database"             // the write to the database failed
	Payload             Cause = "payload"              // the payload cannot be parsed
	Poison              Cause = "poison"               // it crashes the program
	NotQueryable        Cause = "not_askable"          // the supplier has no query
)

// Causes lists all causes.
var Causes = []Cause{
	SupplierUnknown, SupplierRefused, SupplierTimeout, SupplierSignature, MerchantUnreachable, Database, Payload, Poison,
	NotQueryable,
}

// Kinds of subject.
const (
	OfOrder        = "order"
	OfDelivery     = "delivery"
	OfAlertMessage = "alert_message"
	OfMerchant     = "merchant"
	OfRefund       = "refund"
	OfPayout       = "payout"
	OfRefundNotice = "refund_notice" // what a supplier reports about refunds that may not be ours
)

// Item is one compensation.
type Item struct {
	bun.BaseModel `bun:"table:compensations,alias:cp"`

	ID          int64           `bun:"id,pk"`
	Kind        string          `bun:"kind"`
	Cause       Cause           `bun:"cause"`
	SubjectKind string          `bun:"subject_kind"`
	SubjectID   int64           `bun:"subject_id"`
	OrderNo     string          `bun:"order_no"`
	MerchantID  int64           `bun:"merchant_id"` // 0 = none
	SupplierID  int64           `bun:"supplier_id"` // 0 = none
	Lane        int64           `bun:"lane"`
	Amount      int64           `bun:"amount"`   // at stake, in minor units
	Currency    string          `bun:"currency"` // "" = no money involved
	Payload     json.RawMessage `bun:"payload,type:text"`
	// FromVersion is the subject's version when the item was opened; 0 = none.
	FromVersion int64 `bun:"from_version"`
	State       State `bun:"state"`
	// Attempts counts claims over all schedules; at MaxAttempts the current schedule ends.
	Attempts    int64 `bun:"attempts"`
	MaxAttempts int64 `bun:"max_attempts"`
	// NextAt is when it is due, or the end of the lease while it is running (Unix µs); nil =
	// over.
	NextAt     *int64 `bun:"next_at"`
	LeaseOwner int64  `bun:"lease_owner"`
	LeaseUntil int64  `bun:"lease_until"`
	LastClass  Class  `bun:"last_class"`
	LastError  string `bun:"last_error"`
	MadeBy     string `bun:"made_by"` // "operator:…", or a part of the program
	OpenedAt   int64  `bun:"opened_at"`
	FinishedAt *int64 `bun:"finished_at"`
}

// Age returns how long ago the item was opened.
func (x *Item) Age(now int64) time.Duration { return time.Duration(now-x.OpenedAt) * time.Microsecond }

// only reports whether nothing else would move its subject on: an item of a refund or payout
// never dies and cannot be cancelled, since money would be forgotten on its way.
func (x *Item) only() bool { return x.SubjectKind == OfRefund || x.SubjectKind == OfPayout }

// DueNow returns the write that makes the open item of a subject due now, because there is news
// about the subject. A running item is left alone: it looks at its subject anyway.
func DueNow(tx db.Tx, d *db.DB, kind, subjectKind string, subjectID int64) *bun.RawQuery {
	return tx.NewRaw(
		"UPDATE compensations SET next_at = ? WHERE kind = ? AND subject_kind = ? AND subject_id = ? AND state = ? AND next_at > ?",
		d.Now(), kind, subjectKind, subjectID, Waiting, d.Now())
}

// lane returns the queue of an item: one per supplier or, without a supplier, per merchant, so
// that none waits for another's items.
func (x *Item) lane() int64 {
	switch {
	case x.SupplierID != 0:
		return x.SupplierID
	case x.MerchantID != 0:
		return x.MerchantID
	}
	return int64(slices.Index(Names, x.Kind) + 1) // owner ids are far above
}

// Open adds items to the writes of the transaction that found the problem. An item already open
// with the same kind, subject and version stays as it is. The caller sets subject, cause and
// maker. Each item is due after the first wait, and the tick finds it.
func (s Schedule) Open(w *db.Writes, d *db.DB, items ...*Item) {
	s.open(w, d, func() int64 { return s.wait(0) }, items)
}

// OpenDue is Open for items that are due at once, because their first try is the work itself.
func (s Schedule) OpenDue(w *db.Writes, d *db.DB, items ...*Item) {
	s.open(w, d, func() int64 { return 0 }, items)
}

func (s Schedule) open(w *db.Writes, d *db.DB, wait func() int64, items []*Item) {
	if len(items) == 0 {
		return
	}
	now := d.Now()
	for _, x := range items {
		at := now + wait()
		x.ID, x.State, x.NextAt, x.OpenedAt = d.NewID(), Waiting, &at, now
		x.MaxAttempts, x.Lane = s.tries(), x.lane()
		if len(x.Payload) == 0 {
			x.Payload = json.RawMessage("{}")
		}
	}
	w.Insert(&items, "CONFLICT (kind, subject_kind, subject_id, from_version) WHERE "+open+" DO NOTHING")
}
