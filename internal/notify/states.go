package notify

import "backstop/internal/base/moves"

// Status is the status of one delivery. "parked" is not stored: it is a waiting delivery whose
// recipient IsParked.
type Status string

// Statuses of a delivery, see Moves.
const (
	Queued    Status = "queued"
	Sending   Status = "sending"
	RetryWait Status = "retry_wait"
	Delivered Status = "delivered"
	Exhausted Status = "exhausted"
	Skipped   Status = "skipped"
)

// Moves lists every legal change of a delivery's status. Nothing else may write the column.
var Moves = moves.Table[Status]{
	Noun: "Delivery", Column: "deliveries.status",
	About: "One notification for one recipient over one channel or endpoint. A claim is guarded by the statuses it may come from and by the due time, " +
		"a result by `sending`, the lease owner and the number of the attempt. `parked` is derived, never stored.",
	Rows: []moves.Row[Status]{
		{
			Status: Queued, Initial: true, Open: true, To: []Status{Sending, RetryWait},
			Meaning: "Due, not tried yet.",
		},
		{
			Status: Sending, Initial: true, Open: true, To: []Status{Queued, Sending, RetryWait, Delivered, Exhausted, Skipped},
			Meaning: "Claimed until `next_at`, the end of its lease; then due again. Claimed on create where a slot is free: until `lease_until`, without a `next_at`. " +
				"Back to `queued` if the attempt was not made, or on to `skipped` once its settings can be read.",
		},
		{
			Status: RetryWait, Open: true, To: []Status{Sending, RetryWait},
			Meaning: "Waits for its next attempt, or an operator resent it.",
		},
		{Status: Delivered, To: []Status{RetryWait}, Meaning: "Accepted by the recipient."},
		{Status: Exhausted, NeedsPerson: true, To: []Status{RetryWait}, Meaning: "Out of attempts; an exception was opened."},
		{Status: Skipped, Initial: true, To: []Status{RetryWait}, Meaning: "Nothing is sent; the class says why."},
	},
}

// Conditions on the status, for claims and for rescheduling.
var (
	claimable = Moves.In("status", Moves.From(Sending)...)
	waiting   = Moves.In("status", Queued, RetryWait)
	isOpen    = Moves.In("status", Moves.Open()...)
)

// Open reports whether the delivery is not over.
func (s Status) Open() bool { return Moves.Of(s).Open }

// Waiting reports whether the delivery waits for its next attempt.
func (s Status) Waiting() bool { return s.Open() && s != Sending }
