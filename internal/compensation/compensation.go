// Package compensation does again what stopped half-way: a row for each message, call, write
// or flow, tried with growing waits until it is over or dead. What a kind does is in a folder
// below.
package compensation

import (
	"encoding/json"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Names of the kinds.
const (
	Resend      = "resend"      // a message, with the same body and id
	ReplayCall  = "replaycall"  // a call to a supplier, after the supplier was asked
	ReplayWrite = "replaywrite" // a write of ours, if nothing newer is stored
	Rerun       = "rerun"       // a flow, from its start
)

// Names are all kinds.
var Names = []string{Resend, ReplayCall, ReplayWrite, Rerun}

// Cause is why something has to be done again: at first what stopped it, then the class of
// its last try that failed.
type Cause string

// Causes.
const (
	SupplierUnknown     Cause = "supplier_unknown"     // its answer is no well-signed word that we know
	SupplierRefused     Cause = "supplier_refused"     // it said no
	SupplierTimeout     Cause = "supplier_timeout"     // it did not answer
	SupplierSignature   Cause = "supplier_signature"   // its answer is not signed by it
	MerchantUnreachable Cause = "merchant_unreachable" // or an alert's target
	Database            Cause = "database"             // the database did not take it
	Overtaken           Cause = "overtaken"            // something newer is stored
	Payload             Cause = "payload"              // the row cannot be read
	Poison              Cause = "poison"               // it brings the program down
	NotAskable          Cause = "not_askable"          // the supplier cannot be asked
)

// Causes are all of them.
var Causes = []Cause{
	SupplierUnknown, SupplierRefused, SupplierTimeout, SupplierSignature, MerchantUnreachable, Database, Overtaken, Payload, Poison, NotAskable,
}

// Kinds of subjects.
const (
	OfOrder        = "order"
	OfDelivery     = "delivery"
	OfAlertMessage = "alert_message"
	OfMerchant     = "merchant"
	OfApproval     = "approval" // that it carries out
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
	Amount      int64           `bun:"amount"`   // minor units that wait for it
	Currency    string          `bun:"currency"` // "" = it is about no money
	Payload     json.RawMessage `bun:"payload,type:text"`
	// FromVersion is the subject's version when it was opened; 0 = it has none.
	FromVersion int64 `bun:"from_version"`
	State       State `bun:"state"`
	// Attempts counts claims, of all schedules; MaxAttempts is when the present one is over.
	Attempts    int64 `bun:"attempts"`
	MaxAttempts int64 `bun:"max_attempts"`
	// NextAt is when it is due, or the end of the lease while it runs (Unix µs); nil = over.
	NextAt     *int64 `bun:"next_at"`
	LeaseOwner int64  `bun:"lease_owner"`
	LeaseUntil int64  `bun:"lease_until"`
	LastClass  Class  `bun:"last_class"`
	LastError  string `bun:"last_error"`
	MadeBy     string `bun:"made_by"` // "operator:…", or the part of the program
	OpenedAt   int64  `bun:"opened_at"`
	FinishedAt *int64 `bun:"finished_at"`
}

// lane is the line in which an item waits: none has to wait for another supplier's, or,
// where no supplier is concerned, another merchant's.
func (x *Item) lane() int64 {
	switch {
	case x.SupplierID != 0:
		return x.SupplierID
	case x.MerchantID != 0:
		return x.MerchantID
	}
	return int64(slices.Index(Names, x.Kind) + 1) // ids are far above it
}

// Open adds items to the writes of the transaction that found the trouble. One that is open
// already, by kind, subject and version, stays as it is. The caller sets what the item is
// about, its cause and who made it; each is due after the first wait, and the tick finds it.
func (s Schedule) Open(w *db.Writes, d *db.DB, items ...*Item) {
	if len(items) == 0 {
		return
	}
	now := d.Now()
	for _, x := range items {
		at := now + s.wait(0)
		x.ID, x.State, x.NextAt, x.OpenedAt = d.NewID(), Waiting, &at, now
		x.MaxAttempts, x.Lane = s.tries(), x.lane()
		if len(x.Payload) == 0 {
			x.Payload = json.RawMessage("{}")
		}
	}
	w.Add(w.Tx().NewInsert().Model(&items).On("CONFLICT (kind, subject_kind, subject_id, from_version) WHERE " + open + " DO NOTHING"))
}
