package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/report"
)

// ErrSending says that an attempt is running: whoever wants another one waits for
// its end.
var ErrSending = errors.New("an attempt is running")

// ErrNoDelivery says that there is no such notification.
var ErrNoDelivery = errors.New("no such notification")

// Resend makes one notification due at once, whatever became of it, and returns
// what to nudge after the commit. What was over starts its schedule anew and
// leaves the exception desk, to which it comes back when that schedule is used up
// too; what waits goes now and keeps its place in the schedule. The notification's id stays
// the same, so the merchant recognises the repeat. Errors: ErrNoDelivery,
// ErrSending.
func Resend(ctx context.Context, tx db.Tx, d *db.DB, deliveryID int64) (queue.Nudge, error) {
	var row []Delivery
	if err := d.ForUpdate(tx.NewSelect().Model(&row).Where("d.id = ?", deliveryID)).Scan(ctx); err != nil {
		return queue.Nudge{}, fmt.Errorf("read a notification: %w", err)
	}
	if len(row) == 0 {
		return queue.Nudge{}, ErrNoDelivery
	}
	r := row[0]
	switch {
	case r.EventType == Ping:
		return queue.Nudge{}, ErrNoDelivery // a ping is sent while somebody waits, or not at all
	case r.Status == Sending:
		return queue.Nudge{}, ErrSending
	}
	if r.Status == Delivered {
		r.Currency, r.Amount = "", 0 // the merchant knows of the money: none is at risk
	}
	now, from, w := d.Now(), r.ScheduleFrom, tx.Writes()
	if r.NextAt == nil { // it was over
		from = r.Attempts
		if err := reopen(ctx, tx, d, w, r); err != nil {
			return queue.Nudge{}, err
		}
	}
	w.Guard(tx.NewRaw("UPDATE deliveries SET status = ?, next_at = ?, schedule_from = ?, finished_at = NULL, currency = ?, amount = ?"+
		" WHERE id = ? AND status = ?", RetryWait, now, from, r.Currency, r.Amount, r.ID, r.Status), 1)
	if err := w.Exec(ctx); err != nil {
		return queue.Nudge{}, fmt.Errorf("send a notification again: %w", err)
	}
	return queue.Nudge{Delivery: r.ID, Merchant: r.MerchantID}, nil
}

// Neediest is the delivery of an event that is to be sent again first: one that was
// given up, then one that waits, and the merchant's before those of subscribers.
func Neediest(all []*Delivery) *Delivery {
	rank := func(x *Delivery) int {
		switch x.Status {
		case Exhausted:
			return 0
		case RetryWait, Queued, Sending:
			return 1
		}
		return 2
	}
	whose := func(x *Delivery) int {
		if x.Recipient().IsSubscriber() {
			return 1
		}
		return 0
	}
	return slices.MinFunc(all, func(a, b *Delivery) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(whose(a), whose(b)), cmp.Compare(a.ID, b.ID))
	})
}

// reopen counts the money of a delivery that was over as untold again, unless
// another delivery of the event stands for it already, and takes the event off
// the exception desk, unless another one has run out of attempts as well.
func reopen(ctx context.Context, tx db.Tx, d *db.DB, w *db.Writes, r Delivery) error {
	counted, stays := false, false
	if r.Shared {
		missing, err := missingShares(ctx, tx, d, []int64{r.EventID}, []int64{r.SubjectID})
		if err != nil {
			return err
		}
		counted = missing[r.EventID]
		var others []int64
		err = tx.NewRaw("SELECT id FROM deliveries WHERE subject_id = ? AND event_id = ? AND id <> ? AND status = ? AND NOT house",
			r.SubjectID, r.EventID, r.ID, Exhausted).Scan(ctx, &others)
		if err != nil {
			return fmt.Errorf("read the deliveries of an event: %w", err)
		}
		stays = len(others) > 0
	}
	x := report.NewDelta(d.Now())
	if !counted {
		x.Untold(r.MerchantID, r.Currency, 1, r.Amount)
	}
	x.Write(w, d)
	if !stays {
		ids, err := IDsOf(ctx, tx, []int64{r.EventID})
		if err != nil {
			return err
		}
		kind, subject := deskPlace(ids[r.EventID], r.Recipient())
		w.Add(compensation.Resolve(tx, d, kind, subject))
	}
	return nil
}
