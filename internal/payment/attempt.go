package payment

import (
	"cmp"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// AttemptStatus is the status of one try at a supplier.
type AttemptStatus string

// Statuses of an attempt, see Moves. Succeeded settles its order and is unique for it;
// money that came beside it, or late, is SucceededSurplus.
const (
	AttemptCreated   AttemptStatus = "created"
	Submitted        AttemptStatus = "submitted"
	AttemptUnknown   AttemptStatus = "unknown"
	Succeeded        AttemptStatus = "succeeded"
	SucceededSurplus AttemptStatus = "succeeded_surplus"
	AttemptFailed    AttemptStatus = "failed"
	AttemptClosed    AttemptStatus = "closed"
)

// Attempt is one try at a supplier. SupplierRef is its reference there: the order
// number for the first one.
type Attempt struct {
	bun.BaseModel `bun:"table:payment_attempts,alias:pa"`

	ID              int64         `bun:"id,pk"`
	OrderID         int64         `bun:"order_id"`
	AccountID       int64         `bun:"account_id"`
	SupplierRef     string        `bun:"supplier_ref"`
	SupplierTradeNo string        `bun:"supplier_trade_no"`
	Status          AttemptStatus `bun:"status"`
	Amount          int64         `bun:"amount"`
	CreatedAt       int64         `bun:"created_at"`
	UpdatedAt       int64         `bun:"updated_at"`
	SupplierID      int64         `bun:"supplier_id"` // 0 in rows of before: the order's
	Kind            string        `bun:"kind"`        // of Value, see supplier.Started; "" = nothing was started by us
	Value           string        `bun:"value"`       // what the buyer needs; sealed where it is a secret
	ExternalID      string        `bun:"external_id"` // see supplier.Ref
}

// At is the supplier of the attempt.
func (a *Attempt) At(o *order.Order) int64 { return cmp.Or(a.SupplierID, o.SupplierID) }

// ByUs reports whether the payment was, or may have been, started by us.
func (a *Attempt) ByUs() bool {
	return a.Kind != "" || a.Status == AttemptCreated || a.Status == AttemptUnknown
}

// Reference is the attempt's reference at the supplier: surplus money beside it is stored
// under a reference with a suffix.
func (a *Attempt) Reference() string {
	ref, _, _ := strings.Cut(a.SupplierRef, "#")
	return ref
}

// Moves is every legal change of an attempt's status: upsertAttempts, closeAttempts and
// start alone write the column.
var Moves = moves.Table[AttemptStatus]{
	Noun: "Payment attempt", Column: "payment_attempts.status",
	About: "One try at a supplier. Its messages come in any order and come again: what failed or was closed may bring money all the same. " +
		"Written under the lock of its order, by an upsert whose update has the table as its condition.",
	Rows: []moves.Row[AttemptStatus]{
		{
			Status: AttemptCreated, Initial: true, Open: true, To: []AttemptStatus{Submitted, AttemptUnknown, Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "About to be started at the supplier, or cut off there: money may come.",
		},
		{
			Status: Submitted, Initial: true, Open: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The payment was started: money may come.",
		},
		{
			Status: AttemptUnknown, Open: true, To: []AttemptStatus{Submitted, Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The start had no clear answer: money may come. The supplier is asked; another start has the same reference.",
		},
		{Status: Succeeded, Initial: true, Meaning: "It settled its order; one attempt of an order does."},
		{
			Status: SucceededSurplus, Initial: true, NeedsPerson: true, To: []AttemptStatus{Succeeded, SucceededSurplus},
			Meaning: "Money came late, or a second time: an exception stands for it, until two people accept it.",
		},
		{
			Status: AttemptFailed, Initial: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The supplier says that it failed for good.",
		},
		{
			Status: AttemptClosed, Initial: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "Closed by the supplier, or with its order.",
		},
	},
}

// Settled are the statuses in which an attempt has brought money. The index of trade
// numbers contains only these.
var Settled = []AttemptStatus{Succeeded, SucceededSurplus}

// hasTrade finds attempts by their trade number through that index.
var hasTrade = moves.In("status", Settled...) + " AND supplier_trade_no <> ''"

func (a *Attempt) settled() bool { return slices.Contains(Settled, a.Status) }

// open reports whether money may still come of the attempt.
func (a *Attempt) open() bool { return Moves.Of(a.Status).Open }

// attemptFor is the attempt of the message with its new status: the one with that
// reference, or a new one where the merchant started the payment without a call of
// Pay. Surplus money beside a settled attempt gets a row of its own.
func (b *batch) attemptFor(m *Message, o *order.Order, status AttemptStatus) *Attempt {
	c := m.Content
	now := b.p.o.DB.Now()
	a := &Attempt{
		ID: b.p.o.DB.NewID(), OrderID: o.ID, AccountID: m.Supplier.AccountID, SupplierID: m.Supplier.ID, SupplierRef: m.orderRef(),
		SupplierTradeNo: c.TradeNo, Status: status, Amount: c.Amount, CreatedAt: now, UpdatedAt: now,
	}
	for _, old := range b.attempts[o.ID] {
		if old.AccountID != a.AccountID || old.SupplierRef != a.SupplierRef {
			continue
		}
		if old.settled() && old.SupplierTradeNo != a.SupplierTradeNo {
			a.SupplierRef += "#" + a.SupplierTradeNo
		}
	}
	return a
}

// upsertAttempts writes attempts by their reference, sorted by order, in which order rows
// are locked. Once an attempt has brought money, its amount is that of the money: two
// operators may have accepted another amount than the order's.
func upsertAttempts(w *db.Writes, attempts []*Attempt) {
	slices.SortFunc(attempts, func(a, b *Attempt) int { return cmp.Compare(a.OrderID, b.OrderID) })
	w.GuardInsert(&attempts, onKnownAttempt)
}

// onKnownAttempt is a compare-and-set of an attempt that is stored already.
var onKnownAttempt = "CONFLICT (account_id, supplier_ref) DO UPDATE" +
	" SET status = EXCLUDED.status, supplier_trade_no = EXCLUDED.supplier_trade_no, updated_at = EXCLUDED.updated_at," +
	" amount = CASE WHEN " + moves.In("EXCLUDED.status", Settled...) + " THEN EXCLUDED.amount ELSE pa.amount END" +
	" WHERE " + Moves.Allows("pa.status", "EXCLUDED.status")

// closeAttempts closes the open attempts of orders that are closed.
func closeAttempts(tx db.Tx, orderIDs []int64, now int64) *bun.RawQuery {
	return tx.NewRaw("UPDATE payment_attempts SET status = ?, updated_at = ? WHERE order_id IN (?) AND status IN (?)",
		AttemptClosed, now, bun.List(orderIDs), bun.List(Moves.From(AttemptClosed, Moves.Open()...)))
}
