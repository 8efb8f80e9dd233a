package notify

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/db"
	"backstop/internal/queue"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// ErrSending says that an attempt is running: whoever wants another one waits for
// its end.
var ErrSending = errors.New("an attempt is running")

// ErrNoDelivery says that there is no such notification.
var ErrNoDelivery = errors.New("no such notification")

// Resend makes one notification due at once, whatever became of it, and returns
// what to nudge after the commit. What was over starts its schedule anew; what
// waits goes now and keeps its place in the schedule. The notification's id stays
// the same, so the merchant recognises the repeat. Errors: ErrNoDelivery,
// ErrSending.
func Resend(ctx context.Context, tx bun.Tx, d *db.DB, deliveryID int64) (queue.Nudge, error) {
	var row []Delivery
	if err := d.ForUpdate(tx.NewSelect().Model(&row).Where("d.id = ?", deliveryID)).Scan(ctx); err != nil {
		return queue.Nudge{}, fmt.Errorf("read a notification: %w", err)
	}
	if len(row) == 0 {
		return queue.Nudge{}, ErrNoDelivery
	}
	now := d.Now()
	r := row[0]
	from := r.ScheduleFrom
	switch r.Status {
	case Sending:
		return queue.Nudge{}, ErrSending
	case Delivered, Exhausted, Skipped:
		from = r.Attempts
	}
	if r.Status == Delivered {
		r.Currency, r.Amount = "", 0 // the merchant knows of the money: none is at risk
	}
	_, err := tx.NewRaw("UPDATE deliveries SET status = ?, next_at = ?, schedule_from = ?, finished_at = NULL, currency = ?, amount = ? WHERE id = ? AND status = ?",
		RetryWait, now, from, r.Currency, r.Amount, r.ID, r.Status).Exec(ctx)
	if err != nil {
		return queue.Nudge{}, fmt.Errorf("send a notification again: %w", err)
	}
	if untold := report.NewDelta(now); r.NextAt == nil && r.Currency != "" {
		untold.Untold(r.MerchantID, r.Currency, 1, r.Amount)
		if _, err := untold.Query(tx, d).Exec(ctx); err != nil {
			return queue.Nudge{}, fmt.Errorf("count a notification again: %w", err)
		}
	}
	return queue.Nudge{Delivery: r.ID, Merchant: r.MerchantID}, nil
}
