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

// AttemptStatus is the status of one payment attempt at a supplier.
type AttemptStatus string

// Statuses of an attempt, see Moves. Succeeded settles its order and is unique for it; an
// additional or late payment is SucceededSurplus.
const (
	AttemptCreated   AttemptStatus = "created"
	Submitted        AttemptStatus = "submitted"
	AttemptUnknown   AttemptStatus = "unknown"
	Succeeded        AttemptStatus = "succeeded"
	SucceededSurplus AttemptStatus = "succeeded_surplus"
	AttemptFailed    AttemptStatus = "failed"
	AttemptClosed    AttemptStatus = "closed"
)

// Attempt is one payment attempt at a supplier. SupplierRef is its reference there: the order
// number for the first one. A row with order 0 is no attempt: it takes the trade number of money
// in suspense, see batch.hold.
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
	SupplierID      int64         `bun:"supplier_id"` // 0 in old rows: the order's
	Kind            string        `bun:"kind"`        // of Value, see supplier.Started; "" = we started nothing
	Value           string        `bun:"value"`       // what the buyer needs; sealed if it is a secret
	ExternalID      string        `bun:"external_id"` // see supplier.Ref
}

// At returns the supplier of the attempt.
func (a *Attempt) At(o *order.Order) int64 { return cmp.Or(a.SupplierID, o.SupplierID) }

// ByUs reports whether we started the payment, or may have.
func (a *Attempt) ByUs() bool {
	return a.Kind != "" || a.Status == AttemptCreated || a.Status == AttemptUnknown
}

// Reference returns the attempt's reference at the supplier. Surplus payments are stored under
// a reference with a suffix.
func (a *Attempt) Reference() string {
	ref, _, _ := strings.Cut(a.SupplierRef, "#")
	return ref
}

// Moves lists every legal change of an attempt's status. Only upsertAttempts, closeAttempts and
// start write the column.
var Moves = moves.Table[AttemptStatus]{
	Noun: "Payment attempt", Column: "payment_attempts.status",
	About: "One payment attempt at a supplier. Its messages may arrive in any order and repeatedly: a failed or closed attempt may still be paid. " +
		"Written under the lock of its order, by an upsert whose update checks this table.",
	Rows: []moves.Row[AttemptStatus]{
		{
			Status: AttemptCreated, Initial: true, Open: true, To: []AttemptStatus{
				Submitted, AttemptUnknown, Succeeded, SucceededSurplus,
				AttemptFailed, AttemptClosed,
			},
			Meaning: "About to be started at the supplier, or interrupted there; it may still be paid.",
		},
		{
			Status: Submitted, Initial: true, Open: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The payment was started and may still be paid.",
		},
		{
			Status: AttemptUnknown, Open: true, To: []AttemptStatus{Submitted, Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The start had no clear answer; it may still be paid. The supplier is queried; a repeated start has the same reference.",
		},
		{Status: Succeeded, Initial: true, Meaning: "It paid its order; only one attempt of an order does."},
		{
			Status: SucceededSurplus, Initial: true, NeedsPerson: true, To: []AttemptStatus{Succeeded, SucceededSurplus},
			Meaning: "A late or additional payment: an exception is open until two people accept it. Without an order, it takes the trade number of money in suspense.",
		},
		{
			Status: AttemptFailed, Initial: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "The supplier reported a final failure.",
		},
		{
			Status: AttemptClosed, Initial: true, To: []AttemptStatus{Succeeded, SucceededSurplus, AttemptFailed, AttemptClosed},
			Meaning: "Closed by the supplier, or with its order.",
		},
	},
}

// Settled are the statuses of attempts that were paid. The index of trade numbers contains only
// these.
var Settled = []AttemptStatus{Succeeded, SucceededSurplus}

// hasTrade finds attempts by trade number through that index.
var hasTrade = Moves.In("status", Settled...) + " AND supplier_trade_no <> ''"

func (a *Attempt) settled() bool { return slices.Contains(Settled, a.Status) }

// open reports whether the attempt may still be paid.
func (a *Attempt) open() bool { return Moves.Of(a.Status).Open }

// attemptFor returns the message's attempt with its new status: the one with that reference, or
// a new one if the merchant started the payment without calling pay. A surplus payment beside a
// settled attempt gets its own row.
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

// upsertAttempts writes attempts by reference, sorted by order, the order in which order rows
// are locked. Once an attempt is paid, its amount is the amount paid: two operators may have
// accepted another amount than the order's.
func upsertAttempts(w *db.Writes, attempts []*Attempt) {
	slices.SortFunc(attempts, func(a, b *Attempt) int { return cmp.Compare(a.OrderID, b.OrderID) })
	w.GuardInsert(&attempts, onKnownAttempt)
}

// onKnownAttempt is a compare-and-set on an attempt that is already stored.
var onKnownAttempt = "CONFLICT (account_id, supplier_ref) DO UPDATE" +
	" SET status = EXCLUDED.status, supplier_trade_no = EXCLUDED.supplier_trade_no, updated_at = EXCLUDED.updated_at," +
	" amount = CASE WHEN " + Moves.In("EXCLUDED.status", Settled...) + " THEN EXCLUDED.amount ELSE pa.amount END" +
	" WHERE " + Moves.Allows("pa.status", "EXCLUDED.status")

// closeAttempts closes the open attempts of closed orders.
func closeAttempts(tx db.Tx, orderIDs []int64, now int64) *bun.RawQuery {
	return tx.NewRaw("UPDATE payment_attempts SET status = ?, updated_at = ? WHERE order_id IN (?) AND status IN (?)",
		AttemptClosed, now, bun.List(orderIDs), bun.List(Moves.From(AttemptClosed, Moves.Open()...)))
}
